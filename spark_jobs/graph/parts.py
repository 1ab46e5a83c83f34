"""The parts of a definition: which rows there are, and what each column holds.

Where only columns differ between two definitions, the others need not be computed again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.canonical import fingerprint_of, without_aliases
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.manifest import Parts

# Of a digest, as much as tells the columns of one view apart.
_DIGITS = 16


def parts_of(query: str, inputs: Mapping[str, Mapping[str, str]]) -> Parts | None:
    """Digests of a view's rows and columns; None where its columns decide which rows there are.

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``, whose rows have a unique key: no
            output then gives several rows for one, as EXPLODE does.
        inputs: the types of the columns that it reads, by ``layer.name`` and column.

    >>> types = {"silver.t": {"a": "INT", "b": "INT"}}
    >>> one = parts_of("SELECT t.a AS a FROM silver.t AS t", types)
    >>> two = parts_of("SELECT t.a AS a, t.b AS b FROM silver.t AS t", types)
    >>> one.rows == two.rows, one.columns["a"] == two.columns["a"], len(two.columns)
    (True, True, 2)
    """
    written = parse(query)
    if not isinstance(written, exp.Select) or written.args.get("distinct"):
        return None
    tree = parse(without_aliases(written))
    if not isinstance(tree, exp.Select):
        raise TypeError(f"not a SELECT: {query}")
    outputs = {one.output_name: one.unalias() for one in tree.selects}
    rows = tree.copy()
    rows.set("expressions", [exp.Star()])
    # ORDER BY and its like may name an output, or count it.
    if any(one.find(exp.Literal) for one in rows.find_all(exp.Ordered)):
        return None
    named = {one.name for one in rows.find_all(exp.Column) if not one.table} & outputs.keys()
    return Parts(
        rows=_digest(rows, inputs, *(to_sql(outputs[name]) for name in sorted(named))),
        columns={name: _digest(one, inputs) for name, one in outputs.items()},
    )


def _digest(part: exp.Expr, inputs: Mapping[str, Mapping[str, str]], *more: str) -> str:
    """Of a part's SQL and of the types of what it reads."""
    names = {column.name.lower() for column in part.find_all(exp.Column)}
    known = {
        table: {name: kind for name, kind in columns.items() if name.lower() in names}
        for table, columns in inputs.items()
    }
    return fingerprint_of(to_sql(part), known, *more)[:_DIGITS]

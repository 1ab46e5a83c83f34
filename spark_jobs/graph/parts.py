"""Digests of the parts of a definition: the set of rows, and each column.

If two definitions differ only in some columns, the others need not be recomputed.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.canonical import fingerprint_of, without_aliases
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.manifest import Parts

# Digits of a digest; enough to distinguish the columns of one view.
_DIGITS = 16


def parts_of(query: str, inputs: Mapping[str, Mapping[str, str]]) -> Parts | None:
    """Digests of a view's rows and columns; None if its columns decide which rows there are.

    >>> types = {"silver.t": {"a": "INT", "b": "INT"}}
    >>> one = parts_of("SELECT t.a AS a FROM silver.t AS t", types)
    >>> two = parts_of("SELECT t.a AS a, t.b AS b FROM silver.t AS t", types)
    >>> one.rows == two.rows, one.columns["a"] == two.columns["a"], len(two.columns)
    (True, True, 2)

    Args:
        query: qualified Spark SQL, as in ``GoldEntry.query``. Its rows have a unique key, so no
            output multiplies rows as EXPLODE does.
        inputs: types of the columns that it reads, by ``layer.name`` and column.
    """
    written = parse(query)
    if not isinstance(written, exp.Select) or written.args.get("distinct"):
        return None
    tree = parse(without_aliases(written))
    if not isinstance(tree, exp.Select):
        raise TypeError(f"not a SELECT: {query}")
    outputs = {one.output_name: one.unalias() for one in tree.selects}
    tree.set("expressions", [exp.Star()])
    # ORDER BY may refer to an output by name or position.
    if any(one.find(exp.Literal) for one in tree.find_all(exp.Ordered)):
        return None
    named = {one.name for one in tree.find_all(exp.Column) if not one.table} & outputs.keys()
    return Parts(
        rows=_digest(tree, inputs, *(to_sql(outputs[name]) for name in sorted(named))),
        columns={name: _digest(one, inputs) for name, one in outputs.items()},
    )


def _digest(part: exp.Expr, inputs: Mapping[str, Mapping[str, str]], *more: str) -> str:
    """A digest of a part's SQL and of the types that it reads."""
    names = {column.name.lower() for column in part.find_all(exp.Column)}
    known = {
        table: {name: kind for name, kind in columns.items() if name.lower() in names}
        for table, columns in inputs.items()
    }
    return fingerprint_of(to_sql(part), known, *more)[:_DIGITS]

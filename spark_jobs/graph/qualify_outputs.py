"""Names that Spark looks for in the outputs first.

In QUALIFY if an output has a window, and in HAVING over sets of groups beside a call.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify_parens

from spark_jobs.graph.clause_checks import beside_calls
from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.functions import aggregates, bare_columns, is_group_aggregate
from spark_jobs.graph.joined_columns import joins_by_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import MisplacedAliasError


def with_outputs_in_place(tree: exp.Query) -> exp.Query:
    """The same tree with expressions instead of the outputs that QUALIFY and HAVING name.

    sqlglot finds only those of which no table has a column.

    Args:
        tree: a query that is not qualified; it is changed.

    >>> from spark_jobs.graph.dialect import parse, to_sql
    >>> window = "RANK() OVER (ORDER BY b) AS r"
    >>> tree = parse(f"SELECT -a AS a, {window} FROM t QUALIFY a < 3 AND t.a > r")
    >>> to_sql(with_outputs_in_place(tree)).partition(" QUALIFY ")[2]
    '-a < 3 AND t.a > RANK() OVER (ORDER BY b)'
    """
    for select in tree.find_all(exp.Select):
        outputs = _replaced(select)
        for column in [*_names(select), *_names_beside_calls(select)]:
            if (output := outputs.get(column.name.lower())) is not None:
                whole = column.replace(exp.paren(output.copy()))
                simple = simplify_parens(whole, dialect())
                if simple is not whole:
                    whole.replace(simple)
    return tree


def _replaced(select: exp.Select) -> dict[str, exp.Expr]:
    """The expressions of outputs by name."""
    aliases = {one.alias.lower(): one.this for one in _outputs(select)}
    if joins_by_name(select):
        # sqlglot would not find the columns of a join by name again.
        aliases = {
            name: value
            for name, value in aliases.items()
            if all(one.table for one in value.find_all(exp.Column))
        }
    columns = [one for one in select.expressions if isinstance(one, exp.Column) and one.table]
    return aliases | {one.name.lower(): one for one in columns if not one.is_star}


def ambiguous_outputs(
    tree: exp.Query, source: SqlText, subject: str
) -> Iterator[MisplacedAliasError]:
    """Report names that Spark finds twice: beside the output, a window keeps a column of that name.

    Args:
        tree: a query that is not qualified.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for select in tree.find_all(exp.Select):
        kept = set(_kept(select)) & {one.alias.lower() for one in _outputs(select)}
        for column in _names(select) if kept else ():
            if column.name.lower() in kept:
                clause = "QUALIFY beside a window of a column with the same name"
                place = source.of(column)
                yield MisplacedAliasError(subject, column.name, clause, location=place)


def _outputs(select: exp.Select) -> list[exp.Alias]:
    return [one for one in select.expressions if isinstance(one, exp.Alias)]


def _names(select: exp.Select) -> Iterator[exp.Column]:
    """The columns without a table in QUALIFY, if an output has a window."""
    qualify = select.args.get("qualify")
    if qualify is None or not any(_windows(select)):
        return
    for column in qualify.find_all(exp.Column):
        if column.parent_select is select and not column.table:
            yield column


def _names_beside_calls(select: exp.Select) -> Iterator[exp.Column]:
    """The columns without a table in HAVING over sets of groups, beside a call."""
    if beside_calls(select):
        yield from (one for one in bare_columns(select.args["having"].this) if not one.table)


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    for output in select.expressions:
        for window in output.find_all(exp.Window):
            if window.parent_select is select:
                yield window


def _kept(select: exp.Select) -> Iterator[str]:
    """The columns of tables that the windows of the outputs use, outside of aggregates."""
    group = select.args.get("group")
    grouped = group is not None or any(aggregates(one) for one in select.expressions)
    groups = () if group is None else group.expressions
    bare = {one.name.lower() for one in groups if isinstance(one, exp.Column)}
    for window in _windows(select):
        for node in window.walk(prune=is_group_aggregate):
            if isinstance(node, exp.Column) and not (grouped and node.name.lower() not in bare):
                yield node.name.lower()

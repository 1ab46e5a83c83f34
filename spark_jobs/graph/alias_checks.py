"""Finds outputs of a SELECT that it uses where Spark does not know them.

``qualify`` puts the expression of an output wherever its alias stands. Spark does so in other
outputs, GROUP BY, HAVING, QUALIFY and ORDER BY, but not in WHERE, in aggregates and in windows,
and not in outputs that GROUP BY takes by name, by position or with ALL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.errors import Location
from spark_jobs.graph.functions import aggregates, is_aggregate
from spark_jobs.graph.group_checks import grouping_expressions
from spark_jobs.graph.joined_columns import joins_by_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import MisplacedAliasError


@dataclass(frozen=True)
class AliasUse:
    """A column without a table that has the name of an output of its SELECT.

    Attributes:
        start: where it begins in the text, as the tokenizer counts.
        through: where the name in GROUP BY begins that has to be an output as well.
    """

    name: str
    clause: str
    start: int
    location: Location
    through: int | None = None


def alias_uses(tree: exp.Query, source: SqlText) -> list[AliasUse]:
    """The columns that may be outputs where none is allowed; a table's column is found first.

    Args:
        tree: a query that is not qualified.
        source: its text, for locations.
    """
    return [use for select in tree.find_all(exp.Select) for use in _uses(select, source)]


def misplaced_aliases(
    uses: list[AliasUse], qualified: exp.Query, subject: str
) -> Iterator[MisplacedAliasError]:
    """The uses that ``qualify`` replaced, because no table has such a column."""
    left = {one.meta.get("start") for one in qualified.find_all(exp.Identifier)}
    for use in uses:
        if use.start not in left and use.through not in left - {None}:
            yield MisplacedAliasError(subject, use.name, use.clause, location=use.location)


def _uses(select: exp.Select, source: SqlText) -> Iterator[AliasUse]:
    names = {one.alias.lower() for one in select.selects if isinstance(one, exp.Alias)}
    # Columns of joins by name are replaced too.
    if joins_by_name(select):
        return
    seen: set[int] = set()
    for clause, place, through in _places(select) if names else ():
        for column in place.find_all(exp.Column):
            start = column.this.meta.get("start")
            own = column.parent_select is select and not column.table
            if own and column.name.lower() in names and start is not None and start not in seen:
                seen.add(start)
                yield AliasUse(column.name, clause, start, source.of(column), through)


def _places(select: exp.Select) -> Iterator[tuple[str, exp.Expr, int | None]]:
    where = select.args.get("where")
    if where is not None:
        yield "WHERE", where, None
    for output in select.expressions:
        for node in output.find_all(exp.Window):
            yield "the window of another output", node, None
        for call in output.find_all(exp.Func):
            if is_aggregate(call):
                yield "the aggregate of another output", call, None
    for output, through in _grouped_outputs(select):
        yield "an output that is grouped by", output, through


def _grouped_outputs(select: exp.Select) -> Iterator[tuple[exp.Expr, int | None]]:
    """The expressions of the outputs that GROUP BY does not repeat, with the place of the name."""
    group, outputs = select.args.get("group"), select.expressions
    if group is None or any(one.is_star for one in outputs):
        return
    if group.args.get("all"):
        yield from ((one.unalias(), None) for one in outputs if not aggregates(one))
    named = {one.alias.lower(): one.this for one in outputs if isinstance(one, exp.Alias)}
    for one in grouping_expressions(group):
        if isinstance(one, exp.Literal) and one.is_int and 0 < int(one.this) <= len(outputs):
            yield outputs[int(one.this) - 1].unalias(), None
        elif isinstance(one, exp.Column) and not one.table and one.name.lower() in named:
            yield named[one.name.lower()], one.this.meta.get("start")

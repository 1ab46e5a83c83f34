"""Finds outputs of a SELECT that it uses where Spark does not know them.

``qualify`` puts the expression of an output wherever its alias stands. Spark does so in other
outputs, GROUP BY, HAVING, QUALIFY and ORDER BY, but not in WHERE, in aggregates and in windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.errors import Location
from spark_jobs.graph.functions import is_aggregate
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import MisplacedAliasError


@dataclass(frozen=True)
class AliasUse:
    """A column without a table that has the name of an output of its SELECT.

    Attributes:
        start: where it begins in the text, as the tokenizer counts.
    """

    name: str
    clause: str
    start: int
    location: Location


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
        if use.start not in left:
            yield MisplacedAliasError(subject, use.name, use.clause, location=use.location)


def _uses(select: exp.Select, source: SqlText) -> Iterator[AliasUse]:
    names = {one.alias.lower() for one in select.selects if isinstance(one, exp.Alias)}
    # Columns of joins by name are replaced too.
    if any(one.args.get("using") or one.method for one in select.args.get("joins") or ()):
        return
    seen: set[int] = set()
    for clause, place in _places(select) if names else ():
        for column in place.find_all(exp.Column):
            start = column.this.meta.get("start")
            own = column.parent_select is select and not column.table
            if own and column.name.lower() in names and start is not None and start not in seen:
                seen.add(start)
                yield AliasUse(column.name, clause, start, source.of(column))


def _places(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    where = select.args.get("where")
    if where is not None:
        yield "WHERE", where
    for output in select.expressions:
        for node in output.find_all(exp.Window):
            yield "the window of another output", node
        for call in output.find_all(exp.Func):
            if is_aggregate(call):
                yield "the aggregate of another output", call

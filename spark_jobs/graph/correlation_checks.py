"""Checks where a subquery reads columns of the queries around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.functions import aggregates, is_group_aggregate
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import CorrelatedColumnError, UngroupedColumnError
from spark_jobs.graph.sql import relations_of

_AROUND_RELATIONS: Final = (
    exp.From, exp.Join, exp.Subquery, exp.SetOperation, exp.In, exp.Lateral,
)  # fmt: skip
_IN_WHERE: Final = "Compare it in WHERE of the subquery, or join the tables instead."
_TWICE: Final = "Correlate with the query directly around, or join the tables of one of the two."
_BESIDE: Final = (
    "Aggregate the subquery, as in MAX((SELECT …)), write it in GROUP BY once more, or aggregate "
    "in a query of FROM and put the subquery around that."
)
_JOINED: Final = "Compute it in a subquery of FROM first, and use its column."


def check_correlation(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report columns of a query around where Spark does not take them.

    Args:
        tree: a query that ``resolve`` qualified without problems.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for select in tree.find_all(exp.Select):
        for column, levels in _outer_columns(select):
            found = _misplaced(column, select, levels)
            if found is not None:
                place = source.of(column)
                yield CorrelatedColumnError(
                    subject, column.name, found[0], hint=found[1], location=place
                )
                break
        yield from _of_scalars(select, source, subject)
        yield from _ungrouped(select, source, subject)


def _outer_columns(select: exp.Select) -> Iterator[tuple[exp.Column, int]]:
    """The columns of queries around, with the number of subqueries between."""
    own = _relations(select)
    around = list(_around(select))
    for column in select.find_all(exp.Column) if around else ():
        table = column.table.lower()
        if column.parent_select is not select or not table or table in own:
            continue
        found = next((levels for query, levels in around if table in _relations(query)), None)
        if found is not None:
            yield column, found


def _around(select: exp.Select) -> Iterator[tuple[exp.Select, int]]:
    """The SELECTs around, with the number of subqueries, unlike those of FROM, in between."""
    levels = 0
    node: exp.Expr = select
    while node.parent is not None:
        above = node.parent
        relation = isinstance(above.parent, _AROUND_RELATIONS)
        value = isinstance(above, exp.Subquery) and not relation
        levels += value or isinstance(above, exp.Exists | exp.In | exp.Lateral)
        if isinstance(above, exp.Select):
            yield above, levels
        node = above


def _relations(select: exp.Select) -> set[str]:
    return {one.alias_or_name.lower() for one in relations_of(select)}


def _misplaced(column: exp.Column, select: exp.Select, levels: int) -> tuple[str, str] | None:
    """The clause that cannot use a column of a query around, and what to do."""
    if levels > 1:
        return "a subquery within another subquery", _TWICE
    clause = _clause(column, select)
    if clause == "group":
        return "GROUP BY of a subquery", _IN_WHERE
    if clause == "order":
        return "ORDER BY of a subquery", _IN_WHERE
    if clause != "expressions":
        return None
    if column.find_ancestor(exp.Window, exp.Select) is not select:
        return "a window of a subquery", _IN_WHERE
    if _groups(select):
        return "a subquery with aggregates outside of its WHERE and HAVING", _IN_WHERE
    return None


def _clause(node: exp.Expr, select: exp.Select) -> str:
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return node.arg_key or ""


def _groups(select: exp.Select) -> bool:
    grouped = select.args.get("group") or select.args.get("having")
    return bool(grouped) or any(aggregates(one) for one in select.expressions)


def _of_scalars(select: exp.Select, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Correlated subqueries in place of a value where Spark takes none."""
    group = select.args.get("group")
    # GROUP BY may have the same subquery, with other names of its tables.
    written = group is not None and (group.args.get("all") or group.find(exp.Query))
    beside = _groups(select) and not written
    for node in select.find_all(exp.Subquery):
        if node.parent_select is not select or isinstance(node.parent, exp.In):
            continue
        column = next(_columns_of(node, select), None)
        if column is None:
            continue
        clause, found = _clause(node, select), None
        if clause == "joins" and not isinstance(node.parent, exp.Join | exp.Lateral):
            found = "a subquery in the condition of a join", _JOINED
        elif clause == "order":
            found = "a subquery in ORDER BY", _JOINED
        elif clause == "expressions" and beside and not _is_aggregated(node, select):
            found = "a subquery beside aggregates", _BESIDE
        if found is not None:
            yield CorrelatedColumnError(
                subject, column.name, found[0], hint=found[1], location=source.of(column)
            )


def _ungrouped(select: exp.Select, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Columns that EXISTS, IN and subqueries of HAVING read, and GROUP BY does not contain."""
    group, having = select.args.get("group"), select.args.get("having")
    if not _groups(select) or (group is not None and group.args.get("all")):
        return
    names = set() if group is None else {_name(one) for one in group.find_all(exp.Column)}
    for part in (*select.expressions, *([having] if having is not None else [])):
        for node in part.find_all(exp.Query, exp.Exists):
            own = node.parent_select is select and not _is_aggregated(node, select)
            scalar = part is not having and isinstance(node, exp.Subquery)
            for column in _columns_of(node, select) if own and not scalar else ():
                if _name(column) not in names:
                    place = source.of(column)
                    yield UngroupedColumnError(
                        subject, column.name, grouped=group is not None, location=place
                    )
                    return


def _columns_of(node: exp.Expr, select: exp.Select) -> Iterator[exp.Column]:
    """The columns of a SELECT that a subquery reads."""
    own = _relations(select)
    for column in node.find_all(exp.Column):
        query = column.parent_select
        hidden = False
        while query is not None and query is not select:
            hidden = hidden or column.table.lower() in _relations(query)
            query = query.parent_select
        if query is select and not hidden and column.table.lower() in own:
            yield column


def _is_aggregated(node: exp.Expr, select: exp.Select) -> bool:
    """Whether an aggregate of the SELECT, or its FILTER, encloses a node."""
    above = node.parent
    while above is not None and above is not select:
        if is_group_aggregate(above) or isinstance(above, exp.Filter):
            return True
        above = above.parent
    return False


def _name(column: exp.Column) -> str:
    return f"{column.table}.{column.name}".lower()

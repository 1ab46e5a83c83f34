"""Checks clauses that need another one: GROUPING needs sets of groups, QUALIFY a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import UnknownColumnError
from spark_jobs.graph.functions import called_name
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import MisplacedAggregateError, WindowError
from spark_jobs.graph.shown import shown

_GROUPING: Final = frozenset({"grouping", "grouping_id"})
_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)


def check_clauses(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report GROUPING without sets, QUALIFY without a window, and what DISTINCT cannot order by.

    Args:
        tree: a parsed query.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for select in tree.find_all(exp.Select):
        yield from _without_sets(select, source, subject)
        yield from _without_window(select, source, subject)
        if select.args.get("distinct"):
            yield from _unordered(select, source, subject)


def _without_sets(
    select: exp.Select, source: SqlText, subject: str
) -> Iterator[MisplacedAggregateError]:
    group = select.args.get("group")
    if group is not None and group.find(*_SETS) is not None:
        return
    for call in select.find_all(exp.Func):
        if called_name(call) in _GROUPING and call.parent_select is select:
            yield MisplacedAggregateError(
                subject,
                shown(call),
                "a query without ROLLUP, CUBE or GROUPING SETS",
                hint="Remove it, or write GROUP BY ROLLUP (…) for totals of the groups as well.",
                location=source.of(call),
            )


def _without_window(select: exp.Select, source: SqlText, subject: str) -> Iterator[WindowError]:
    qualify = select.args.get("qualify")
    if qualify is None:
        return
    windows = (one for part in (*select.expressions, qualify) for one in part.find_all(exp.Window))
    if not any(one.parent_select is select for one in windows):
        yield WindowError(
            subject,
            "QUALIFY",
            "has no window function, and the SELECT list has none either",
            hint="Filter rows in WHERE, and groups in HAVING.",
            location=source.of(qualify),
        )


def _unordered(select: exp.Select, source: SqlText, subject: str) -> Iterator[UnknownColumnError]:
    """Columns of ORDER BY and SORT BY that SELECT DISTINCT does not return."""
    if any(one.is_star for one in select.expressions):
        return
    outputs = {one.output_name.lower(): one for one in select.expressions}
    for clause in ("order", "sort"):
        ordered = select.args.get(clause)
        for column in ordered.find_all(exp.Column) if ordered is not None else ():
            first, *others = [part.name.lower() for part in column.parts]
            # The relation of a column is not known any more behind an alias.
            kept = [one for one in others if not isinstance(outputs.get(one), exp.Alias | None)]
            if column.parent_select is select and first not in outputs and not kept:
                yield UnknownColumnError(
                    subject,
                    ".".join(part.name for part in column.parts),
                    [one.output_name for one in select.expressions],
                    table="SELECT DISTINCT",
                    location=source.of(column),
                )

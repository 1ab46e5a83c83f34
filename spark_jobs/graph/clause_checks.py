"""Checks clauses that need another one: GROUPING needs sets of groups, QUALIFY a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import UnknownColumnError
from spark_jobs.graph.functions import (
    aggregates,
    bare_columns,
    called_name,
    is_group_aggregate,
    looks_up,
)
from spark_jobs.graph.misplaced import misplaced
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import MisplacedAggregateError, WindowError

_GROUPING: Final = frozenset({"grouping", "grouping_id"})
_ADD_TO_OUTPUTS: Final = "Add it to the SELECT list AS a name, and use this name."
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
        yield from _hidden_by_outputs(select, source, subject)
        yield from _beside_calls(select, source, subject)
        yield from _without_window(select, source, subject)
        yield from _aggregate_in_qualify(select, source, subject)
        if select.args.get("distinct"):
            yield from _unordered(select, source, subject)


def has_sets(select: exp.Select) -> bool:
    """Whether a SELECT groups by ROLLUP, CUBE or GROUPING SETS."""
    group = select.args.get("group")
    return group is not None and group.find(*_SETS) is not None


def beside_calls(select: exp.Select) -> bool:
    """Whether HAVING over sets of groups has an aggregate, the output of one, or another call.

    Only then Spark looks for all its columns in the outputs.

    Args:
        select: a query that is not qualified.
    """
    having = select.args.get("having")
    if having is None or not has_sets(select):
        return False
    outputs = (one for one in select.expressions if isinstance(one, exp.Alias))
    names = {one.alias.lower() for one in outputs if aggregates(one)}
    named = (one for one in bare_columns(having.this) if not one.table)
    calls = aggregates(having.this) or looks_up(having.this)
    return calls or any(one.name.lower() in names for one in named)


def grouping_calls(part: exp.Expr, select: exp.Select) -> Iterator[exp.Func]:
    """The calls of GROUPING and GROUPING_ID in a part of a SELECT, without its subqueries."""
    for call in part.find_all(exp.Func):
        if called_name(call) in _GROUPING and call.parent_select is select:
            yield call


def _without_sets(
    select: exp.Select, source: SqlText, subject: str
) -> Iterator[MisplacedAggregateError]:
    for call in grouping_calls(select, select) if not has_sets(select) else ():
        clause = "a query without ROLLUP, CUBE or GROUPING SETS"
        hint = "Remove it, or write GROUP BY ROLLUP (…) for totals of the groups as well."
        yield misplaced(call, clause, source, subject, hint=hint)


def _hidden_by_outputs(
    select: exp.Select, source: SqlText, subject: str
) -> Iterator[MisplacedAggregateError]:
    """GROUPING behind the SELECT list, where Spark does not find what is grouped by."""
    outputs = select.expressions
    if any(one.is_star for one in outputs) or not has_sets(select):
        return
    bare = {one.name.lower() for one in outputs if isinstance(one, exp.Column)}
    aliases = [one for one in outputs if isinstance(one, exp.Alias)]
    renamed = {one.this.name.lower() for one in aliases if isinstance(one.this, exp.Column)}
    names = {one.alias.lower() for one in aliases}
    for word, key in (("HAVING", "having"), ("ORDER BY", "order"), ("QUALIFY", "qualify")):
        part = select.args.get(key)
        for call in grouping_calls(part, select) if part is not None else ():
            for value in (one.unnest() for one in call.iter_expressions()):
                name = value.name.lower()
                hidden = renamed if value.args.get("table") or key == "qualify" else renamed | names
                found = name in bare or (key != "having" and name not in hidden)
                if not isinstance(value, exp.Column) or not found:
                    clause = f"{word} unless SELECT returns its column under its own name"
                    yield misplaced(call, clause, source, subject, hint=_ADD_TO_OUTPUTS)
                    break


def _beside_calls(
    select: exp.Select, source: SqlText, subject: str
) -> Iterator[UnknownColumnError]:
    """Columns that HAVING uses beside a call: over sets of groups, Spark finds outputs."""
    having = select.args.get("having")
    if any(one.is_star for one in select.expressions) or not beside_calls(select):
        return
    # It might be a column of the query around.
    if select.find_ancestor(exp.Exists, exp.In, exp.Where, exp.Having, exp.Qualify, exp.Select):
        return
    names = {one.output_name.lower() for one in select.expressions}
    bare = {one.name.lower() for one in select.expressions if isinstance(one, exp.Column)}
    for column in bare_columns(having.this) if having is not None else ():
        if column.parts[0].name.lower() not in names and column.name.lower() not in bare:
            yield UnknownColumnError(
                subject,
                ".".join(part.name for part in column.parts),
                sorted(names),
                table="the outputs, where HAVING over sets of groups looks",
                location=source.of(column),
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


def _aggregate_in_qualify(
    select: exp.Select, source: SqlText, subject: str
) -> Iterator[MisplacedAggregateError]:
    for call in _own_aggregates(select.args.get("qualify"), select):
        yield misplaced(call, "QUALIFY", source, subject, hint=_ADD_TO_OUTPUTS)


def _own_aggregates(part: exp.Expr | None, select: exp.Select) -> Iterator[exp.Func]:
    """The aggregates in a part of a SELECT, without GROUPING and without its subqueries."""
    for call in part.find_all(exp.Func) if part is not None else ():
        own = call.parent_select is select and called_name(call) not in _GROUPING
        if own and is_group_aggregate(call):
            yield call


def _unordered(select: exp.Select, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Columns and aggregates in ORDER BY and SORT BY that SELECT DISTINCT does not return."""
    if any(one.is_star for one in select.expressions):
        return
    outputs = {one.output_name.lower(): one for one in select.expressions}
    for clause in ("order", "sort"):
        ordered = select.args.get(clause)
        aggregate = next(_own_aggregates(ordered, select), None)
        if aggregate is not None:
            hint = "Add it to the SELECT list AS a name, and order by this name."
            yield misplaced(aggregate, "ORDER BY of SELECT DISTINCT", source, subject, hint=hint)
            continue
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

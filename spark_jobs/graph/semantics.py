"""Checks for SQL that Spark's analyzer rejects although every name resolves.

Only definite errors are reported: if a type or place is uncertain, Spark decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.correlation_checks import check_correlation
from spark_jobs.graph.field_checks import check_fields
from spark_jobs.graph.functions import is_aggregate, is_group_aggregate, window_of
from spark_jobs.graph.group_checks import (
    hidden_in_qualify,
    other_ids,
    ungrouped_columns,
    ungrouped_marks,
)
from spark_jobs.graph.misplaced import misplaced
from spark_jobs.graph.order_checks import check_order
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import (
    MisplacedStarError,
    SetArityError,
    UngroupedColumnError,
)
from spark_jobs.graph.shown import set_word, shown
from spark_jobs.graph.type_checks import check_types
from spark_jobs.graph.window_checks import check_subqueries, check_windows


def check_semantics(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report ungrouped columns, misplaced aggregates and stars, set arity, types and windows.

    Args:
        tree: a query that ``resolve`` qualified without problems.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for one in tree.find_all(exp.SetOperation):
        yield from _arity(one, source, subject)
    for select in tree.find_all(exp.Select):
        misplaced = list(_misplaced(select, source, subject))
        yield from misplaced
        if not misplaced:
            yield from _ungrouped(select, source, subject)
    yield from check_correlation(tree, source, subject)
    yield from _stars(tree, source, subject)
    yield from check_types(tree, source, subject)
    yield from check_order(tree, source, subject)
    yield from check_fields(tree, source, subject)
    yield from check_windows(tree, source, subject)
    yield from check_subqueries(tree, source, subject)


def _arity(node: exp.SetOperation, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    left, right = node.left.unnest(), node.right.unnest()
    if node.args.get("by_name") or not (
        isinstance(left, exp.Query) and isinstance(right, exp.Query)
    ):
        return
    if any(one.is_star for one in (*left.selects, *right.selects)):
        return
    counts = len(left.selects), len(right.selects)
    if counts[0] != counts[1]:
        place = source.of(right.selects[0]) if right.selects else source.first()
        yield SetArityError(subject, set_word(node), *counts, location=place)


def _stars(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Stars where Spark expands none: in operators, CASE, IF and casts, and COUNT(t.*)."""
    for star in tree.find_all(exp.Star):
        within = star.parent
        if of_table := isinstance(within, exp.Column):
            within = within.parent
        outside = within
        while isinstance(outside, exp.Dot):
            outside = outside.parent
        # The fields of a struct, as arguments.
        within = outside if isinstance(outside, exp.Func) else within
        if isinstance(within, exp.Binary | exp.Unary | exp.Case | exp.If | exp.Cast) or (
            of_table and isinstance(within, exp.Count)
        ):
            yield MisplacedStarError(subject, shown(within), location=source.of(within))


def _misplaced(select: exp.Select, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Aggregates and windows in clauses that are evaluated before them, or nested aggregates."""
    joins = [on for join in select.args.get("joins") or () if (on := join.args.get("on"))]
    clauses: list[tuple[str, exp.Expr | None]] = [
        ("WHERE", select.args.get("where")),
        ("GROUP BY", select.args.get("group")),
        *(("the condition of a join", on) for on in joins),
    ]
    for clause, node in clauses:
        if node is None:
            continue
        for call in _calls(node):
            over = isinstance(call.parent, exp.Window)
            hint = (
                "Filter in QUALIFY, or in a query around this one."
                if over
                else "Filter groups in HAVING, or aggregate in a subquery."
            )
            yield misplaced(call, clause, source, subject, hint=hint)
    for node in select.find_all(exp.Filter):
        for call in _calls(node.expression) if _own(node, select) else ():
            hint = "Compute it in a subquery first, and filter by its column."
            yield misplaced(call, "FILTER", source, subject, hint=hint)
    having = select.args.get("having")
    for window in having.find_all(exp.Window) if having is not None else ():
        if _own(window, select):
            hint = "Filter in QUALIFY, or in a query around this one."
            yield misplaced(window, "HAVING", source, subject, hint=hint)
    yield from _nested(select, source, subject)


def _nested(select: exp.Select, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Aggregates and windows within an aggregate."""
    for window in select.find_all(exp.Window):
        if _own(window, select) and _inside_aggregate(window, select):
            hint = "Compute it in a subquery first, and aggregate its column."
            yield misplaced(window, "an aggregate", source, subject, hint=hint)
    for call in select.find_all(exp.Func):
        if _own(call, select) and is_aggregate(call) and _inside_aggregate(call, select):
            hint = "Aggregate in a subquery first, and then its result."
            yield misplaced(call, "another aggregate", source, subject, hint=hint)


def _calls(clause: exp.Expr) -> Iterator[exp.Func]:
    """Aggregates and window functions of a clause, without those of its subqueries."""
    for node in clause.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if isinstance(node, exp.Window) and isinstance(node.this, exp.Func):
            yield node.this
        elif is_group_aggregate(node):
            yield node


def _inside_aggregate(call: exp.Expr, select: exp.Select) -> bool:
    """Whether an aggregate of the same SELECT, not a window function, encloses this one."""
    if window_of(call) is not None:
        return False
    node = call.parent
    while node is not None and node is not select:
        if is_group_aggregate(node):
            return True
        node = node.parent
    return False


def _own(node: exp.Expr, select: exp.Select) -> bool:
    return node.parent_select is select


def _ungrouped(select: exp.Select, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Columns next to aggregates, and those of GROUPING, that GROUP BY does not contain."""
    grouped = select.args.get("group") is not None
    for column in ungrouped_columns(select):
        place = source.of(column)
        yield UngroupedColumnError(subject, column.name, grouped=grouped, location=place)
    for column in hidden_in_qualify(select):
        place = source.of(column.this)
        yield UngroupedColumnError(
            subject, column.name, grouped=grouped, qualify=True, location=place
        )
    marks = list(ungrouped_marks(select))
    for call in marks:
        clause = "a query that does not group by its column"
        hint = "Give it what GROUP BY has, as it is written there."
        yield misplaced(call, clause, source, subject, hint=hint)
    for call in other_ids(select) if not marks else ():
        clause = "a query that groups by other columns, or in another order"
        hint = "Write GROUPING_ID(): it has all columns of GROUP BY in their order."
        yield misplaced(call, clause, source, subject, hint=hint)

"""Checks window functions and the number of columns of subqueries."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.frame_checks import frame_problem
from spark_jobs.graph.functions import called_name, is_aggregate, spark_functions, window_of
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import SubqueryColumnsError, WindowError
from spark_jobs.graph.shown import shown

# Functions that number or read rows in an order, and need one.
_ORDERED = frozenset(
    {"row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"}
)


def check_windows(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report window functions whose OVER is missing, undefined, unordered or not allowed.

    Args:
        tree: a query that ``resolve`` qualified without problems.
        source: its text, for locations.
        subject: name of the declared table in messages.
    """
    for call in tree.find_all(exp.Func):
        name = called_name(call)
        window = window_of(call)
        problem = None
        if window is not None:
            problem = _over(window, call, name)
        elif name in _ORDERED:
            problem = "lacks OVER", "Write OVER (PARTITION BY … ORDER BY …) behind it."
        if problem:
            yield WindowError(
                subject, shown(call), problem[0], hint=problem[1], location=source.of(call)
            )


def check_subqueries(tree: exp.Query, source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report subqueries in place of a value that have several columns."""
    for node in tree.walk():
        if isinstance(node, exp.In):
            inner = node.args.get("query")
            wanted = len(node.this.expressions) if isinstance(node.this, exp.Tuple) else 1
        elif isinstance(node, exp.Subquery):
            inner = None if _is_relation(node) else node
            wanted = 1
        else:
            continue
        query = inner.unnest() if isinstance(inner, exp.Expr) else None
        if not isinstance(query, exp.Query) or any(one.is_star for one in query.selects):
            continue
        if len(query.selects) != wanted:
            place = source.of(query.selects[-1])
            yield SubqueryColumnsError(subject, len(query.selects), wanted, location=place)


def _is_relation(node: exp.Subquery) -> bool:
    """Whether a subquery is a relation: in FROM, JOIN, a set operation, IN or as the query."""
    parent = node.parent
    while isinstance(parent, exp.Subquery):
        parent = parent.parent
    relations = (exp.From, exp.Join, exp.SetOperation, exp.In, exp.Exists, exp.CTE, exp.Lateral)
    return parent is None or isinstance(parent, relations)


def _over(window: exp.Window, call: exp.Func, name: str) -> tuple[str, str] | None:
    """What is wrong with a function's OVER, and what to do."""
    named = window.args.get("alias")
    if named is not None:
        # The others have their definition in place.
        return (
            f"names a window {named.name!r}",
            f"Define it once: WINDOW {named.name} AS (…), or write OVER (…).",
        )
    if spark_functions().get(name) == "scalar" and not is_aggregate(call):
        return "cannot have OVER", "OVER goes with aggregates and with functions such as RANK."
    if isinstance(call.this, exp.Distinct):
        return (
            "counts each value once, which no window does",
            "Number the values by DENSE_RANK() OVER (… ORDER BY value) and take the MAX of that.",
        )
    if name in _ORDERED and not window.args.get("order"):
        return "needs an order of the rows", "Write ORDER BY in its OVER (…)."
    return frame_problem(window, name in _ORDERED)

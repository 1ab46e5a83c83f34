"""Window functions; a tie that makes the result ambiguous is an error at run time."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.aggregates import AGGREGATES, aggregate
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import INT
from spark_jobs.graph.duck.typed import Typed

Translate = Callable[[exp.Expr], Typed]

_PLACES = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_NEIGHBOURS = {exp.Lag: "lag", exp.Lead: "lead"}
_BOUNDS = {"UNBOUNDED", "CURRENT ROW"}


def windowed(node: exp.Window, typed: Translate) -> Typed:
    """Translate a window function to DuckDB.

    Raises:
        NotTranslatedError: it is not on the closed list.
    """
    rows = f"{_partition(node, typed)}{ordered(node.args.get('order'), typed)}"
    found = _function(node, typed, f"OVER ({rows}{_frame(node)})")
    spec = node.args.get("spec")
    by_rows = spec is not None and spec.args.get("kind") == "ROWS"
    if not by_rows and not isinstance(node.this, exp.RowNumber | exp.Lag | exp.Lead):
        return found
    # Among tied rows, RANK equals ROW_NUMBER for only one.
    decided = f"rank() OVER ({rows}) = row_number() OVER ({rows})"
    tied = f"CAST(error('an order that leaves ties') AS {found.kind.in_duckdb})"
    return Typed(f"(CASE WHEN {decided} THEN {found.sql} ELSE {tied} END)", found.kind)


def _function(node: exp.Window, typed: Translate, over: str) -> Typed:
    function = node.this
    kind = type(function)
    if kind in _PLACES:
        return Typed(f"CAST({_PLACES[kind]}() {over} AS INTEGER)", INT)
    if kind in _NEIGHBOURS:
        value = typed(function.this)
        offset = function.args.get("offset")
        step = "1" if offset is None else _written(offset)
        if not step.isdigit():
            raise NotTranslatedError(to_sql(function))
        return Typed(f"{_NEIGHBOURS[kind]}({value.sql}, {step}) {over}", value.kind)
    if kind in AGGREGATES and not isinstance(function, exp.Avg):
        found = aggregate(function, typed)
        inner = found.sql
        if inner.startswith("CAST("):
            # OVER belongs to the call inside of CAST(sum(x) AS T).
            call, _, rest = inner.removeprefix("CAST(").rpartition(" AS ")
            return Typed(f"CAST({call} {over} AS {rest}", found.kind)
        return Typed(f"{inner} {over}", found.kind)
    raise NotTranslatedError(to_sql(node))


def ordered(order: exp.Expr | None, typed: Translate) -> str:
    """ORDER BY with explicit NULLS FIRST or LAST; "" without an order.

    Raises:
        NotTranslatedError: the engines may sort the values differently.
    """
    if order is None:
        return ""
    parts = []
    for one in order.expressions:
        value = typed(one.this)
        if not value.kind.is_compared or value.literal is not None:
            raise NotTranslatedError(f"an order by {one.sql('spark')}")
        parts.append(f"{value.sql} {sort_direction(one)}")
    return f" ORDER BY {', '.join(parts)}"


def sort_direction(node: exp.Ordered) -> str:
    """The direction of a sort term, and the position of NULLs."""
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{'DESC' if node.args.get('desc') else 'ASC'} NULLS {nulls}"


def _partition(node: exp.Window, typed: Translate) -> str:
    values = [typed(one) for one in node.args["partition_by"]]
    if not all(one.kind.is_compared for one in values):
        raise NotTranslatedError(to_sql(node))
    return f"PARTITION BY {', '.join(one.sql for one in values)}" if values else ""


def _written(number: exp.Expr | None) -> str:
    """A number as written; "" for anything else: the name of ``1 + 1`` is ``1``."""
    return number.name if isinstance(number, exp.Literal) else ""


def _frame(node: exp.Window) -> str:
    spec = node.args.get("spec")
    if spec is None:
        return ""
    words = []
    for side in ("start", "end"):
        bound, direction = spec.args.get(side), spec.args.get(f"{side}_side") or ""
        text = bound if isinstance(bound, str) else _written(bound)
        if not (text in _BOUNDS or (text.isdigit() and spec.args.get("kind") == "ROWS")):
            raise NotTranslatedError(to_sql(node))
        words.append(f"{text} {direction}".strip())
    return f" {spec.args['kind']} BETWEEN {words[0]} AND {words[1]}"

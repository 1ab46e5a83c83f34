"""Aggregates whose result does not depend on the order of rows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from spark_jobs.definitions.column_types import MOST_DIGITS
from spark_jobs.graph.decimal_types import total_size
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import BIGINT, BOOLEAN, DOUBLE, Kind
from spark_jobs.graph.duck.typed import Typed, converted, divided

Translate = Callable[[exp.Expr], Typed]

AGGREGATES = frozenset(
    {exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr, exp.CountIf}
)
# A double does not represent all larger integers, so sums would depend on their order.
_WHOLE_IN_DOUBLE = 2**53


def aggregate(node: exp.Expr, typed: Translate, condition: str | None = None) -> Typed:
    """Translate an aggregate to DuckDB.

    Args:
        node: one of ``AGGREGATES``.
        typed: translates its arguments.
        condition: SQL condition on the rows, for DuckDB; None: all rows.

    Raises:
        NotTranslatedError: the engines' results may differ.
    """
    where = "" if condition is None else f" FILTER (WHERE {condition})"
    if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
        return Typed(f"count(*){where}", BIGINT)
    distinct, inner = _argument(node)
    value = typed(inner)
    match node:
        case exp.Count() if not distinct or value.kind.is_compared:
            return Typed(f"count({distinct}{value.sql}){where}", BIGINT)
        case exp.CountIf() if not distinct:
            # DuckDB's count_if over no rows is NULL.
            held = converted(value, BOOLEAN)
            return Typed(f"count(CASE WHEN {held.sql} THEN 1 END){where}", BIGINT)
        case exp.Sum():
            return _sum(value, distinct, where)
        case exp.Avg():
            return _mean(value, distinct, where)
        case exp.Min() | exp.Max() if value.kind.is_compared:
            return Typed(f"{node.key}({value.sql}){where}", value.kind)
        case exp.LogicalAnd() | exp.LogicalOr():
            word = "bool_and" if isinstance(node, exp.LogicalAnd) else "bool_or"
            return Typed(f"{word}({converted(value, BOOLEAN).sql}){where}", BOOLEAN)
        case _:
            raise NotTranslatedError(f"{to_sql(node)} of {value.kind}")


def _argument(node: exp.Expr) -> tuple[str, exp.Expr]:
    inner = node.this
    distinct = ""
    if isinstance(inner, exp.Distinct):
        distinct = "DISTINCT "
        if len(inner.expressions) != 1:
            raise NotTranslatedError("DISTINCT over several columns")
        inner = inner.expressions[0]
    return distinct, inner


def _sum(value: Typed, distinct: str, where: str) -> Typed:
    kind = _sum_kind(value.kind)
    return Typed(f"CAST(sum({distinct}{value.sql}){where} AS {kind.in_duckdb})", kind)


def _sum_kind(kind: Kind) -> Kind:
    if kind.is_integer:
        return BIGINT
    if kind.is_decimal:
        return Kind("decimal", *total_size((kind.precision, kind.scale)))
    # A sum of doubles depends on the order of rows.
    raise NotTranslatedError(f"a sum of {kind}")


def _mean(value: Typed, distinct: str, where: str) -> Typed:
    count = Typed(f"count({distinct}{value.sql}){where}", BIGINT)
    if value.kind.is_decimal:
        total = _sum(value, distinct, where)
        # Unlike in arithmetic, digits behind the point are kept.
        sizes = (value.kind.precision, value.kind.scale)
        kind = Kind("decimal", *(min(one + 4, MOST_DIGITS) for one in sizes))
        mean = divided(total, count, kind)
        return Typed(f"(CASE WHEN {count.sql} = 0 THEN NULL ELSE {mean.sql} END)", kind)
    if not value.kind.is_integer:
        raise NotTranslatedError(f"an average of {value.kind}")
    wide = f"CAST({value.sql} AS HUGEINT)"
    absolute = f"sum({distinct}abs({wide})){where}"
    total_sql = f"sum({distinct}{wide}){where}"
    checked = (
        f"(CASE WHEN {absolute} < {_WHOLE_IN_DOUBLE} THEN CAST({total_sql} AS DOUBLE)"
        f" ELSE CAST(error('a mean of numbers beyond 2^53') AS DOUBLE) END)"
    )
    return Typed(
        f"(CASE WHEN {count.sql} = 0 THEN NULL ELSE {checked} / CAST({count.sql} AS DOUBLE) END)",
        DOUBLE,
    )

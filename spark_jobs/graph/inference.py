"""Spark types of expressions, where they can be derived without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.annotate_types import TypeAnnotator

from spark_jobs.definitions.column_types import TypeTextError, canonical_type

_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_MAX_PRECISION = 38
# Functions that return a struct of two timestamps of their argument's type.
_TIME_WINDOWS = frozenset({"window", "session_window"})

Annotator = Callable[[TypeAnnotator, Any], Any]


def spark_type(node: exp.Expr, dialect: Any) -> str:
    """The type in canonical spelling; "" if only Spark knows it."""
    kind = node.type
    if kind is None or kind.is_type(exp.DType.UNKNOWN, exp.DType.NULL):
        return ""
    try:
        return canonical_type(kind.sql(dialect=dialect))
    except TypeTextError:
        return ""


def overrides() -> dict[type[exp.Expr], dict[str, Any]]:
    """Annotators for expressions that sqlglot types differently from Spark.

    Returns:
        by type of expression, a dict with the key ``annotator``, as sqlglot's dialects have it.
    """
    return {
        exp.Sum: {"annotator": _sum},
        exp.Avg: {"annotator": _average},
        exp.Anonymous: {"annotator": _time_window},
        **{
            kind: {"annotator": _arithmetic}
            for kind in (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv)
        },
        **{
            kind: {"annotator": _unknown}
            for kind in (
                exp.Explode,
                exp.ExplodeOuter,
                exp.Posexplode,
                exp.PosexplodeOuter,
                exp.Inline,
                exp.Round,
                exp.Ceil,
                exp.Floor,
                exp.Abs,
            )
        },
    }


def _parts(kind: Any) -> tuple[int, int] | None:
    """Precision and scale of a decimal."""
    if kind is None or not kind.is_type(exp.DType.DECIMAL):
        return None
    numbers = [int(one.name) for one in kind.expressions]
    return (numbers[0], numbers[1] if len(numbers) > 1 else 0) if numbers else (10, 0)


def _decimal(precision: int, scale: int) -> Any:
    if precision > _MAX_PRECISION:
        return exp.DType.UNKNOWN
    return exp.DataType.build(f"DECIMAL({precision}, {scale})")


def _sum(self: TypeAnnotator, node: Any) -> Any:
    kind = _argument_type(node)
    parts = _parts(kind)
    if parts:
        self._set_type(node, _decimal(min(parts[0] + 10, _MAX_PRECISION), parts[1]))
    elif kind is not None and kind.is_type(*_INTEGERS):
        self._set_type(node, exp.DType.BIGINT)
    elif kind is not None and kind.is_type(exp.DType.FLOAT, exp.DType.DOUBLE):
        self._set_type(node, exp.DType.DOUBLE)
    else:
        self._set_type(node, exp.DType.UNKNOWN)
    return node


def _average(self: TypeAnnotator, node: Any) -> Any:
    kind = _argument_type(node)
    parts = _parts(kind)
    if parts:
        self._set_type(node, _decimal(parts[0] + 4, parts[1] + 4))
    elif kind is not None and kind.is_type(*_INTEGERS, exp.DType.FLOAT, exp.DType.DOUBLE):
        self._set_type(node, exp.DType.DOUBLE)
    else:
        self._set_type(node, exp.DType.UNKNOWN)
    return node


def _argument_type(node: Any) -> Any:
    inner = node.this
    if isinstance(inner, exp.Distinct) and inner.expressions:
        inner = inner.expressions[0]
    return inner.type


def _arithmetic(self: TypeAnnotator, node: Any) -> Any:
    """Integers and floats by Spark's widening; decimals, dates and intervals stay unknown."""
    kinds = [node.left.type, node.right.type]
    result: Any = exp.DType.UNKNOWN
    if all(kind is not None and kind.is_type(*_INTEGERS) for kind in kinds):
        order = list(_INTEGERS)
        result = order[max(order.index(kind.this) for kind in kinds)]
        if isinstance(node, exp.Div):
            result = exp.DType.DOUBLE
        elif isinstance(node, exp.IntDiv):
            result = exp.DType.BIGINT
    elif all(kind is not None and kind.is_type(*_INTEGERS, exp.DType.DOUBLE) for kind in kinds):
        result = exp.DType.DOUBLE
    self._set_type(node, result)
    return node


def _time_window(self: TypeAnnotator, node: Any) -> Any:
    kind = node.expressions[0].type if node.expressions else None
    if node.name.lower() not in _TIME_WINDOWS or kind is None:
        return _unknown(self, node)
    # sqlglot's name for Spark's TIMESTAMP.
    if not kind.is_type(exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ):
        return _unknown(self, node)
    bounds = [exp.ColumnDef(this=exp.to_identifier(one), kind=kind) for one in ("start", "end")]
    self._set_type(node, exp.DataType(this=exp.DType.STRUCT, expressions=bounds, nested=True))
    return node


def _unknown(self: TypeAnnotator, node: Any) -> Any:
    self._set_type(node, exp.DType.UNKNOWN)
    return node

"""Spark types of expressions, where they can be derived without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.optimizer.annotate_types import TypeAnnotator

from spark_jobs.definitions.column_types import MOST_DIGITS, TypeTextError, canonical_type
from spark_jobs.graph.decimal_types import (
    Size,
    product_size,
    quotient_size,
    remainder_size,
    sum_size,
    total_size,
)

_INTEGERS = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
# Their number of digits as a decimal.
_DIGITS = dict(zip(_INTEGERS, (3, 5, 10, 20), strict=True))
_FLOATS = (exp.DType.FLOAT, exp.DType.DOUBLE)
# Expressions that return one of several values.
_CHOICES = (exp.Coalesce, exp.If, exp.Nvl2, exp.Case, exp.Greatest, exp.Least)
# sqlglot's names for Spark's TIMESTAMP.
_MOMENTS = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_SIZES: dict[type[exp.Expr], Callable[..., Size]] = {
    exp.Add: sum_size,
    exp.Sub: sum_size,
    exp.Mul: product_size,
    exp.Div: quotient_size,
    exp.Mod: remainder_size,
}
_FIRST_BIGINT, _FIRST_DECIMAL = 2**31, 2**63
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
        exp.Literal: {"annotator": _literal},
        exp.Nullif: {"annotator": _first},
        exp.Neg: {"annotator": _negated},
        exp.Dot: {"annotator": _field},
        exp.Bracket: {"annotator": _bracket},
        exp.Array: {"annotator": _array},
        exp.DateDiff: {"annotator": _difference},
        exp.Quantile: {"annotator": _percentile},
        **{
            call: {"returns": kind}
            for call, kind in (
                (exp.Year, exp.DType.INT),
                (exp.Day, exp.DType.INT),
                (exp.WeekOfYear, exp.DType.INT),
                (exp.DateTrunc, exp.DType.DATE),
                (exp.TimestampDiff, exp.DType.BIGINT),
                (exp.ArrayPosition, exp.DType.BIGINT),
            )
        },
        exp.Extract: {"annotator": _extract},
        **{kind: {"annotator": _bits} for kind in (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)},
        **{kind: {"annotator": _choice} for kind in _CHOICES},
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
                exp.SafeDivide,
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
    if precision > MOST_DIGITS:
        return exp.DType.UNKNOWN
    return exp.DataType.build(f"DECIMAL({precision}, {scale})")


def _sum(self: TypeAnnotator, node: Any) -> Any:
    kind = _argument_type(node)
    parts = _parts(kind)
    if parts:
        self._set_type(node, _decimal(*total_size(parts)))
    elif kind is not None and kind.is_type(*_INTEGERS):
        self._set_type(node, exp.DType.BIGINT)
    elif kind is not None and kind.is_type(*_FLOATS):
        self._set_type(node, exp.DType.DOUBLE)
    else:
        self._set_type(node, exp.DType.UNKNOWN)
    return node


def _average(self: TypeAnnotator, node: Any) -> Any:
    kind = _argument_type(node)
    parts = _parts(kind)
    if parts:
        self._set_type(node, _decimal(parts[0] + 4, parts[1] + 4))
    elif kind is not None and kind.is_type(*_INTEGERS, *_FLOATS):
        self._set_type(node, exp.DType.DOUBLE)
    else:
        self._set_type(node, exp.DType.UNKNOWN)
    return node


def _argument_type(node: Any) -> Any:
    inner = node.this
    if isinstance(inner, exp.Distinct) and inner.expressions:
        inner = inner.expressions[0]
    return inner.type


def _literal(self: TypeAnnotator, node: Any) -> Any:
    """A number is an INT, a BIGINT or a decimal of its digits; with an exponent it is a DOUBLE."""
    whole, point, behind = node.name.lower().partition(".")
    if node.is_string or "e" in node.name.lower():
        return Spark.EXPRESSION_METADATA[exp.Literal]["annotator"](self, node)
    digits = len(whole.lstrip("0")) + len(behind)
    kind: Any
    if not point and int(whole) < _FIRST_BIGINT:
        kind = exp.DType.INT
    elif not point and int(whole) < _FIRST_DECIMAL:
        kind = exp.DType.BIGINT
    else:
        kind = _decimal(max(digits, 1), len(behind))
    self._set_type(node, kind)
    return node


def chosen_values(node: exp.Expr) -> list[exp.Expr]:
    """The values of which a CASE, IF, COALESCE, GREATEST or the like returns one."""
    if isinstance(node, exp.Case):
        values = [*(one.args["true"] for one in node.args["ifs"]), node.args.get("default")]
    elif isinstance(node, exp.If | exp.Nvl2):
        values = [node.args["true"], node.args.get("false")]
    else:
        values = [node.this, *node.expressions]
    return [one for one in values if one]


def _choice(self: TypeAnnotator, node: Any) -> Any:
    """The common type of all values."""
    kinds = {one.type for one in chosen_values(node) if not one.is_type(exp.DType.NULL)}
    self._set_type(node, common_type(kinds) if kinds else exp.DType.NULL)
    return node


def field_type(kind: exp.DataType | None, name: str) -> exp.DataType | None:
    """The type of a field, whose name may be in any case; of an array of structs, it is an array.

    None if there is no such field.
    """
    if kind is not None and kind.is_type(exp.DType.ARRAY):
        found = field_type(_element(kind), name)
        return None if found is None else _array_of(found)
    fields = kind.expressions if kind is not None and kind.is_type(exp.DType.STRUCT) else ()
    kinds = [one.args.get("kind") for one in fields if one.name.lower() == name.lower()]
    return kinds[0] if len(kinds) == 1 else None


def _element(kind: exp.DataType) -> exp.DataType | None:
    return next((one for one in kind.expressions if isinstance(one, exp.DataType)), None)


def _field(self: TypeAnnotator, node: Any) -> Any:
    found = field_type(node.this.type, node.expression.name)
    self._set_type(node, found or exp.DType.UNKNOWN)
    return node


def _bracket(self: TypeAnnotator, node: Any) -> Any:
    """An element of an array or a map, or a field as ``place['city']``."""
    kind, key = node.this.type, node.expressions[0]
    named = isinstance(key, exp.Literal) and key.is_string
    if named and kind is not None and kind.is_type(exp.DType.STRUCT, exp.DType.ARRAY):
        self._set_type(node, field_type(kind, key.name) or exp.DType.UNKNOWN)
        return node
    return self._annotate_bracket(node)


def _array(self: TypeAnnotator, node: Any) -> Any:
    kinds = {one.type for one in node.expressions if not one.is_type(exp.DType.NULL)}
    element = exp.DataType.build(common_type(kinds)) if kinds else None
    if element is None or element.is_type(exp.DType.UNKNOWN):
        return _unknown(self, node)
    self._set_type(node, _array_of(element))
    return node


def _array_of(element: exp.DataType) -> exp.DataType:
    return exp.DataType(this=exp.DType.ARRAY, expressions=[element.copy()], nested=True)


def common_type(kinds: set[Any]) -> Any:
    """The type to which Spark widens values of these types; UNKNOWN if only Spark knows it."""
    if len(kinds) == 1:
        return next(iter(kinds))
    # sqlglot's type of a literal is another one.
    if all(kind.is_type(*exp.DataType.TEXT_TYPES) for kind in kinds):
        return exp.DType.TEXT
    later = {kind for kind in kinds if not kind.is_type(exp.DType.DATE)}
    if len(later) == 1 and all(kind.is_type(*_MOMENTS) for kind in later):
        return later.pop()
    if all(kind.is_type(*_INTEGERS) for kind in kinds):
        return max((kind.this for kind in kinds), key=_INTEGERS.index)
    sizes = [_parts(kind) or (_DIGITS.get(kind.this, 0), 0) for kind in kinds]
    if all(digits for digits, _ in sizes):
        scale = max(scale for _, scale in sizes)
        return _decimal(scale + max(digits - behind for digits, behind in sizes), scale)
    numbers = (*_INTEGERS, *_FLOATS, exp.DType.DECIMAL)
    return exp.DType.DOUBLE if all(kind.is_type(*numbers) for kind in kinds) else exp.DType.UNKNOWN


def _first(self: TypeAnnotator, node: Any) -> Any:
    """NULLIF has the type of its first value."""
    self._set_type(node, node.this.type)
    return node


def _negated(self: TypeAnnotator, node: Any) -> Any:
    """A text becomes a DOUBLE."""
    text = node.this.type is not None and node.this.is_type(*exp.DataType.TEXT_TYPES)
    self._set_type(node, exp.DType.DOUBLE if text else node.this.type)
    return node


def _extract(self: TypeAnnotator, node: Any) -> Any:
    """Seconds have six decimal places, the other fields are integers."""
    seconds = node.name.upper() in {"SECOND", "S", "SEC", "SECONDS", "SECS"}
    self._set_type(node, _decimal(8, 6) if seconds else exp.DType.INT)
    return node


def _bits(self: TypeAnnotator, node: Any) -> Any:
    """Whole numbers are widened; of other values, a text becomes a BIGINT."""
    kinds = {one.type or exp.DataType.build("unknown") for one in (node.left, node.right)}
    whole = all(kind.is_type(*_INTEGERS) for kind in kinds)
    self._set_type(node, common_type(kinds) if whole else exp.DType.UNKNOWN)
    return node


def _percentile(self: TypeAnnotator, node: Any) -> Any:
    """PERCENTILE of one percentage is a DOUBLE."""
    # Missing in a call that is refused later.
    percentage = node.args.get("quantile")
    one = percentage is not None and not percentage.is_type(exp.DType.ARRAY)
    self._set_type(node, exp.DType.DOUBLE if one else exp.DType.UNKNOWN)
    return node


def _difference(self: TypeAnnotator, node: Any) -> Any:
    """DATEDIFF counts days as an INT, and a given unit as a BIGINT."""
    self._set_type(node, exp.DType.BIGINT if node.args.get("unit") else exp.DType.INT)
    return node


def _arithmetic(self: TypeAnnotator, node: Any) -> Any:
    """Numbers by Spark's rules; dates and intervals stay unknown."""
    sides = node.left, node.right
    kinds = [one.type or exp.DataType.build("unknown") for one in sides]
    sizes = [_size(one) for one in sides]
    result: Any = exp.DType.UNKNOWN
    if all(kind.is_type(*_INTEGERS) for kind in kinds):
        result = common_type(set(kinds))
        if isinstance(node, exp.Div):
            result = exp.DType.DOUBLE
        elif isinstance(node, exp.IntDiv):
            result = exp.DType.BIGINT
    elif all(kind.is_type(*_INTEGERS, exp.DType.DOUBLE, exp.DType.DECIMAL) for kind in kinds):
        if any(kind.is_type(exp.DType.DOUBLE) for kind in kinds):
            result = exp.DType.DOUBLE
        elif isinstance(node, exp.IntDiv):
            result = exp.DType.BIGINT
        elif all(sizes):
            result = _decimal(*_SIZES[type(node)](*sizes))
    self._set_type(node, result)
    return node


def _size(node: exp.Expr) -> Size | None:
    """An exact number beside a decimal: a literal has the digits that are written."""
    bare = node.unnest()
    bare = bare.this if isinstance(bare, exp.Neg) else bare
    literal = bare.this if bare.args.get("suffix") in {"L", "S"} else bare
    if isinstance(literal, exp.Literal) and literal.is_int:
        return len(literal.name.lstrip("0")) or 1, 0
    kind = node.type
    return None if kind is None else _parts(kind) or _of_integer(kind)


def _of_integer(kind: exp.DataType) -> Size | None:
    digits = _DIGITS.get(kind.this)
    return None if digits is None else (digits, 0)


def _time_window(self: TypeAnnotator, node: Any) -> Any:
    kind = node.expressions[0].type if node.expressions else None
    if node.name.lower() not in _TIME_WINDOWS or kind is None:
        return _unknown(self, node)
    if not kind.is_type(*_MOMENTS):
        return _unknown(self, node)
    bounds = [exp.ColumnDef(this=exp.to_identifier(one), kind=kind) for one in ("start", "end")]
    self._set_type(node, exp.DataType(this=exp.DType.STRUCT, expressions=bounds, nested=True))
    return node


def _unknown(self: TypeAnnotator, node: Any) -> Any:
    self._set_type(node, exp.DType.UNKNOWN)
    return node

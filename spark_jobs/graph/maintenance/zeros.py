"""Finds where 0.0 and -0.0 may meet, which are equal, but not for all of Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.functions import called_name
from spark_jobs.graph.maintenance.algebra import LeftJoin, Node, Side, children
from spark_jobs.graph.maintenance.column_types import column_types, expression_types
from spark_jobs.graph.maintenance.incomparable import origin
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle

_FLOATS = ("float", "double")
# Functions of unknown type that return no FLOAT or DOUBLE, or one only of such an argument.
_SAME = frozenset(
    [
        "any_value", "array_union", "bin", "cardinality", "coalesce", "collect_set",
        "convert_timezone", "crc32", "date_trunc", "every", "first", "first_value", "flatten",
        "format_number", "greatest", "hash", "if", "ifnull", "isnull", "last", "last_value",
        "least", "make_date", "make_interval", "make_timestamp", "max", "max_by", "min", "min_by",
        "mode", "nullif", "nvl", "nvl2", "parse_json", "split_part", "struct", "sum",
        "timestamp_seconds", "to_utc_timestamp", "uuid", "xxhash64", "",
    ]
)  # fmt: skip
# Of a text, they return a DOUBLE.
_NUMERIC = frozenset(["abs", "bround", "ceil", "ceiling", "floor", "pmod", "positive", "round"])
_OPERATORS = (exp.Add, exp.Sub, exp.Mul, exp.Mod)


def check_zeros(node: Node, types: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse NOT IN over numbers with two zeros.

    Spark joins it by the bits of its values, unlike all other equalities.

    Args:
        node: the root.
        types: column types, by table and lower-case column name.

    Raises:
        NotIncrementalError: the values of a NOT IN are FLOAT or DOUBLE.
    """
    if isinstance(node, LeftJoin) and node.side is Side.ANTI:
        equal = _of_not_in(node.condition)
        known = column_types(node.left, types) | column_types(node.right, types)
        sides = [] if equal is None else [equal.this, equal.expression]
        if any(one in _FLOATS for one in expression_types(sides, known)):
            text = (
                "NOT IN over FLOAT or DOUBLE, for which 0.0 and -0.0 differ in Spark, has no "
                "incremental rule: write NOT EXISTS, or compare decimals"
            )
            raise NotIncrementalError(Obstacle.UNSUPPORTED_SUBQUERY, text)
    for child in children(node):
        check_zeros(child, types)


def has_two_zeros(kind: str) -> bool:
    """Whether values of a Spark SQL type have 0.0 and -0.0, or contain such values.

    >>> has_two_zeros("struct<x:double>"), has_two_zeros("decimal(9,2)")
    (True, False)
    """
    return any(one in kind for one in _FLOATS)


def signed_columns(node: Node, tables: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The columns of an operator that may hold both zeros, with their types; "" if unknown.

    Args:
        node: the operator.
        tables: column types, by table and lower-case column name.
    """
    kinds = column_types(node, tables)
    signed = (one for one in node.columns if _is_signed(node, one, kinds, tables))
    return {name: kinds.get(name, "") for name in signed}


def _of_not_in(condition: exp.Expr) -> exp.EQ | None:
    """The equality of ``a = b OR (a = b) IS NULL``, which stands for NOT IN."""
    found = condition.unnest()
    if not isinstance(found, exp.Or):
        return None
    equal, unknown = found.this.unnest(), found.expression.unnest()
    is_null = isinstance(unknown, exp.Is) and unknown.this.unnest() == equal
    return equal if is_null and isinstance(equal, exp.EQ) else None


def _is_signed(
    node: Node, name: str, kinds: Mapping[str, str], tables: Mapping[str, Mapping[str, str]]
) -> bool:
    """Whether a column is of such a type; or, if that is unknown, may be of one."""
    if name in kinds:
        return has_two_zeros(kinds[name])
    found = origin(node, name)
    if found is None:
        return False
    below, value = found
    read = column_types(below, tables)
    return _may_make_zeros(value, read) or any(
        _is_signed(below, one.name, read, tables) for one in value.find_all(exp.Column)
    )


def _may_make_zeros(value: exp.Expr, kinds: Mapping[str, str]) -> bool:
    """Whether a part of an expression may make a FLOAT or DOUBLE of other types."""
    parts: list[exp.Expr] = [
        one for one in value.walk() if isinstance(one, (exp.Func, exp.Div, *_OPERATORS))
    ]
    found = expression_types(parts, dict(kinds))
    return any(
        has_two_zeros(kind) if kind else not _keeps(part, kinds)
        for part, kind in zip(parts, found, strict=True)
    )


def _keeps(part: exp.Expr, kinds: Mapping[str, str]) -> bool:
    """Whether a function or an operator of unknown type makes no FLOAT or DOUBLE."""
    if isinstance(part, exp.Div):
        return False
    if isinstance(part, _OPERATORS) or called_name(part) in _NUMERIC:
        arguments = [one for one in part.iter_expressions() if not isinstance(one, exp.Var)]
        return "string" not in expression_types(arguments, dict(kinds))
    return called_name(part) in _SAME

"""Finds where 0.0 and -0.0 may meet, which are equal, but not for all of Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import LeftJoin, Node, Side, children
from spark_jobs.graph.maintenance.column_types import column_types, expression_types
from spark_jobs.graph.maintenance.incomparable import origin
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle

_FLOATS = ("float", "double")


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
    """Whether a column is of such a type; or, if that is unknown, computed of one."""
    if name in kinds:
        return has_two_zeros(kinds[name])
    found = origin(node, name)
    if found is None:
        return False
    below, value = found
    read = column_types(below, tables)
    return any(_is_signed(below, one.name, read, tables) for one in value.find_all(exp.Column))

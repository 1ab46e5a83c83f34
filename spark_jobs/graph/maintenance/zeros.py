"""Finds where Spark tells 0.0 and -0.0 apart, which a net change does not."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import LeftJoin, Node, Side, children
from spark_jobs.graph.maintenance.column_types import column_types, expression_types
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle

FLOATS = ("float", "double")


def check_zeros(node: Node, types: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse NOT IN over numbers with two zeros.

    Spark joins it by the bits of its values, unlike all other equalities. A change adds up rows
    that are equal, and has either zero for both.

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
        if any(one in FLOATS for one in expression_types(sides, known)):
            text = (
                "NOT IN over FLOAT or DOUBLE, for which 0.0 and -0.0 differ in Spark, has no "
                "incremental rule: write NOT EXISTS, or compare decimals"
            )
            raise NotIncrementalError(Obstacle.UNSUPPORTED_SUBQUERY, text)
    for child in children(node):
        check_zeros(child, types)


def _of_not_in(condition: exp.Expr) -> exp.EQ | None:
    """The equality of ``a = b OR (a = b) IS NULL``, which stands for NOT IN."""
    found = condition.unnest()
    if not isinstance(found, exp.Or):
        return None
    equal, unknown = found.this.unnest(), found.expression.unnest()
    is_null = isinstance(unknown, exp.Is) and unknown.this.unnest() == equal
    return equal if is_null and isinstance(equal, exp.EQ) else None

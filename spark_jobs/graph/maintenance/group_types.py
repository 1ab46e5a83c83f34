"""Finds groups of which several may be equal to one row, as '1' and '01' are to 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    LeftJoin,
    Node,
    Side,
    children,
    conjuncts,
    used,
)
from spark_jobs.graph.maintenance.column_types import column_types, expression_types
from spark_jobs.graph.maintenance.correlated import KEY
from spark_jobs.graph.maintenance.reasons import NotIncrementalError, Obstacle

_FLOATS = ("float", "double")


def merges(kind: str, other: str) -> bool:
    """Whether values of a type become equal if Spark compares them with those of another type.

    >>> merges("string", "int"), merges("int", "string"), merges("bigint", "double")
    (True, False, True)

    Args:
        kind: Spark SQL type of the values; "" if unknown.
        other: the type that they are compared with.
    """
    if not kind or not other or kind == other:
        return False
    if kind == "string":
        return True
    if other in _FLOATS:
        return kind == "bigint" or kind.startswith("decimal")
    return (kind, other) == ("timestamp_ntz", "timestamp")


def check_groups(node: Node, types: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse subqueries whose groups may be split by the values that they are compared by.

    Args:
        node: the root.
        types: column types, by table and lower-case column name.

    Raises:
        NotIncrementalError: a row around may equal several groups.
    """
    if isinstance(node, LeftJoin):
        _check_join(node, types)
    for child in children(node):
        check_groups(child, types)


def _check_join(node: LeftJoin, types: Mapping[str, Mapping[str, str]]) -> None:
    found = list(_keys(node))
    known = column_types(node.left, types) | column_types(node.right, types) if found else {}
    for both in found:
        kind, other = expression_types(both, known)
        if merges(kind, other):
            text = (
                f"a subquery that compares values of type {kind} with {other}, to which several "
                "may be equal, has no incremental rule: cast them in the subquery"
            )
            raise NotIncrementalError(Obstacle.UNSUPPORTED_SUBQUERY, text)


def _keys(node: LeftJoin) -> Iterator[list[exp.Expr]]:
    """The columns by which a subquery's rows were grouped, with what each is compared with."""
    grouped = node.side is Side.OUTER and isinstance(node.right, Aggregate)
    for one in conjuncts(node.condition):
        if isinstance(one, exp.EQ):
            both = [one.this, one.expression]
            key, value = both if used(one.this) <= set(node.right.columns) else both[::-1]
            if grouped or KEY in key.name:
                yield [key, value]

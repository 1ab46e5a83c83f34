"""Aggregates the right side of a left join before the join.

``SELECT u.id, COUNT(o.id) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id`` reads
the sums of each ``o.user_id``, which are aggregate state, and not the orders. This is eager
aggregation: Yan and Larson, "Eager Aggregation and Lazy Aggregation", VLDB 1995.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.functions import reads_clock
from spark_jobs.graph.maintenance.algebra import (
    Aggregate,
    Filter,
    LeftJoin,
    Named,
    Node,
    Project,
    Side,
    conjuncts,
    equality,
    used,
)
from spark_jobs.graph.maintenance.column_types import Types, column_types, expression_types
from spark_jobs.graph.maintenance.scope import named
from spark_jobs.graph.maintenance.unique import is_identical

# Of these over a column of the right side, rows without a match change nothing.
_CALLS = (exp.Count, exp.Sum, exp.Avg)
_SUM = re.compile(r"bigint|decimal\(\d+,\s*[0-6]\)")


@dataclass(frozen=True)
class Eager:
    """A grouping above a left join, taken apart.

    Attributes:
        left: the groups of the left side, with their number of rows.
        right: the groups of the right side, by the columns of the join.
        condition: joins both.
        outputs: the columns of the grouping, over the joined groups.
    """

    left: Aggregate
    right: Aggregate
    condition: exp.Expr
    outputs: tuple[Named, ...]

    def joined(self, left: Node, right: Node) -> Node:
        """The grouping, of operators in place of ``left`` and ``right``."""
        return Project(LeftJoin(left, right, self.condition, Side.OUTER), self.outputs)


def eager(node: Aggregate, tables: Mapping[str, Mapping[str, str]], prefix: str) -> Eager | None:
    """Take a grouping above a left join apart; None if it is of another form.

    Each row of a left group has the same matches, because the group has the columns of the join. So
    a count or a sum is that of the matches, times the rows of the left group.

    Args:
        node: the grouping.
        tables: column types of the tables, by table and lower-case name.
        prefix: of the names of the new columns.
    """
    join = node.child
    if not isinstance(join, LeftJoin) or join.side is not Side.OUTER:
        return None
    keys = {value.name: name for name, value in node.keys if isinstance(value, exp.Column)}
    if len(keys) < len(node.keys) or not keys.keys() <= set(join.left.columns):
        return None
    types = column_types(join, tables)
    found = _pairs(join, keys, types)
    if found is None or not all(_is_of_right(call, join) for _, call in node.aggregates):
        return None
    pairs, conditions = found
    rows: Node = join.right
    for one in conditions:
        rows = Filter(rows, one)
    number = f"{prefix}rows"
    left = Aggregate(
        join.left,
        tuple((f"{prefix}{name}", named(at)) for at, name in keys.items()),
        ((number, _all_rows()),),
    )
    right = Aggregate(
        rows,
        tuple((f"{prefix}{at}", named(at)) for _, at in pairs),
        tuple((f"{prefix}{name}", call.copy()) for name, call in node.aggregates),
    )
    condition = exp.and_(
        *(
            exp.EQ(this=named(f"{prefix}{keys[mine]}"), expression=named(f"{prefix}{its}"))
            for mine, its in pairs
        )
    )
    outputs: list[Named] = [(name, named(f"{prefix}{name}")) for name in keys.values()]
    calls = [call for _, call in node.aggregates]
    for (name, call), kind in zip(node.aggregates, expression_types(calls, types), strict=True):
        value = _times(call, named(f"{prefix}{name}"), named(number), kind)
        if value is None:
            return None
        outputs.append((name, value))
    return Eager(left, right, condition, tuple(outputs))


def _pairs(
    join: LeftJoin, keys: dict[str, str], types: Types
) -> tuple[list[tuple[str, str]], list[exp.Expr]] | None:
    """The equal columns of both sides, and the conditions on the right side alone."""
    pairs: dict[str, str] = {}
    conditions = []
    right = set(join.right.columns)
    for one in conjuncts(join.condition):
        if reads_clock(one):
            return None
        if used(one) <= right:
            conditions.append(one)
            continue
        both = equality(one)
        if both is None:
            return None
        mine, its = both if both[1] in right else both[::-1]
        # Equal values of these types are the same, so that a left group has one right group.
        same = types.get(mine, "") == types.get(its, "") and is_identical(types.get(its, ""))
        if mine not in keys or its not in right or its in pairs or not same:
            return None
        pairs[its] = mine
    return ([(mine, its) for its, mine in pairs.items()], conditions) if pairs else None


def _is_of_right(call: exp.Expr, join: LeftJoin) -> bool:
    """Whether a call is over a column of the right side; it is NULL in rows without a match."""
    column = call.this
    return (
        type(call) in _CALLS
        and isinstance(column, exp.Column)
        and column.name in join.right.columns
    )


def _times(call: exp.Expr, value: exp.Expr, number: exp.Expr, kind: str) -> exp.Expr | None:
    """An aggregate of the matches, as that of ``number`` rows with these matches each.

    Returns:
        None if the product may not be exact.
    """
    if isinstance(call, exp.Avg):
        return value
    if isinstance(call, exp.Count):
        value = exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
        return exp.Mul(this=value, expression=number)
    # Spark keeps at least six decimal places of a product of decimals.
    if _SUM.fullmatch(kind) is None:
        return None
    # The sum's own type, which decides the types of what is computed from it.
    return exp.cast(exp.Mul(this=value, expression=number), kind)


def _all_rows() -> exp.Expr:
    return exp.Count(this=exp.Star(), big_int=True)

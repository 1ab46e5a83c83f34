"""SQL fragments that several operators use."""

from __future__ import annotations

from collections.abc import Sequence, Set

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import LeftJoin, used
from spark_jobs.graph.maintenance.scope import named


def join_all(
    inputs: Sequence[tuple[Sequence[str], exp.Query]], conditions: Sequence[exp.Expr], *more: str
) -> exp.Select:
    """Join inputs so that each has a condition with the previous ones, if possible.

    Args:
        inputs: the column names and the query of each input, at least two.
        conditions: over these columns.
        more: further columns or expressions to select.
    """
    left = list(inputs)
    pending = list(conditions)
    columns, first = left.pop(0)
    known = set(columns)
    query = exp.select().from_(aliased(first, "t1"), copy=False)
    count = 1
    while left:
        names, relation = left.pop(next_tied([one for one, _ in left], known, pending))
        known |= set(names)
        ready = [one for one in pending if used(one) <= known]
        pending = [one for one in pending if one not in ready]
        count += 1
        query = query.join(
            aliased(relation, f"t{count}"),
            on=exp.and_(*ready) if ready else None,
            join_type="inner" if ready else "cross",
            copy=False,
        )
    outputs = [name for names, _ in inputs for name in names]
    return query.select(*selected((*outputs, *more)), copy=False)


def selected(names: Sequence[str]) -> list[exp.Expr]:
    """The named columns; a constant if there are none, since rows must be counted."""
    one = exp.alias_(exp.Literal.number(1), "__one")
    return [*map(named, names)] or [one]


def next_tied(
    inputs: Sequence[Sequence[str]], known: Set[str], conditions: Sequence[exp.Expr]
) -> int:
    """The input to join next, given the columns of each: the first with a condition."""
    for at, names in enumerate(inputs):
        for reads in map(used, conditions):
            if reads & set(names) and reads & known and reads <= known | set(names):
                return at
    return 0


def each_copy(count: exp.Expr) -> exp.Expr:
    """A column that repeats its row ``count`` times; at least once."""
    one = exp.Literal.number(1)
    return exp.func("EXPLODE", exp.func("SEQUENCE", one, exp.cast(count, "int")))


def left_join(
    node: LeftJoin, left: exp.Query, right: exp.Query, condition: exp.Expr, *more: str
) -> exp.Select:
    """A left join; ``more`` are additional columns of the left side."""
    return (
        exp.select(*selected((*node.columns, *more)))
        .from_(aliased(left, "l"), copy=False)
        .join(
            aliased(right, "r"),
            on=condition,
            join_type=node.side.value.lower(),
            copy=False,
        )
    )


def union_all(parts: Sequence[exp.Query]) -> exp.Query:
    """UNION ALL of the parts."""
    query = parts[0]
    for part in parts[1:]:
        query = exp.union(query, part, distinct=False, copy=False)
    return query


def aliased(query: exp.Query, alias: str) -> exp.Subquery:
    """A query as a subquery with an alias."""
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(alias)))

"""Takes apart an aggregate of distinct values that has no GROUP BY.

``SELECT COUNT(DISTINCT a), SUM(b) FROM t`` counts the groups of ``SELECT a FROM t GROUP BY a``,
which are aggregate state with a counter for each value, and joins the sum to them. The counting
algorithm for duplicates: Gupta, Mumick and Subrahmanian, "Maintaining Views Incrementally", 1993.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.graph.maintenance.algebra import Aggregate, Identity, Named, identity
from spark_jobs.graph.maintenance.scope import named

_CALLS = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


@dataclass(frozen=True)
class Part:
    """Some of the calls of an aggregate.

    Attributes:
        whole: computes them; its child is ``values``, if there are some.
        values: the distinct values that they are of; None for calls over all rows.
    """

    whole: Aggregate
    values: Aggregate | None = None


def apart(node: Aggregate, prefix: str) -> list[Part] | None:
    """The aggregate as several, to be joined; None if it is of another form.

    Args:
        node: an aggregate.
        prefix: starts the names of the values.
    """
    if node.keys:
        return None
    rest: list[Named] = []
    over: dict[tuple[Identity, ...], tuple[list[exp.Expr], list[Named]]] = {}
    for name, call in node.aggregates:
        condition, inside = None, call
        if isinstance(call, exp.Filter):
            condition, inside = call.expression.this, call.this
        if not isinstance(inside.this, exp.Distinct):
            rest.append((name, call))
            continue
        if type(inside) not in _CALLS:
            return None
        values = [_where(one, condition) for one in inside.this.expressions]
        over.setdefault(tuple(map(identity, values)), (values, []))[1].append((name, inside))
    parts = [Part(Aggregate(node.child, (), tuple(rest)))] if rest else []
    for at, (values, calls) in enumerate(over.values()):
        names = [f"{prefix}{at}_{index}" for index, _ in enumerate(values)]
        groups = Aggregate(node.child, tuple(zip(names, values, strict=True)), ())
        outputs = tuple((name, _of_groups(call, names)) for name, call in calls)
        parts.append(Part(Aggregate(groups, (), outputs), groups))
    return parts


def _where(value: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """A value, NULL where the condition of a FILTER is not true: no call counts NULL."""
    if condition is None:
        return value.copy()
    return exp.func("IF", condition.copy(), value.copy(), exp.null())


def _of_groups(call: exp.Expr, names: Sequence[str]) -> exp.Expr:
    """The call over the groups; of several columns, COUNT takes rows without NULL."""
    if len(names) == 1:
        value: exp.Expr = named(names[0])
    else:
        missing = exp.or_(*[exp.Is(this=named(one), expression=exp.null()) for one in names])
        value = exp.func("IF", missing, exp.null(), exp.Literal.number(1))
    made = call.copy()
    made.set("this", value)
    return made

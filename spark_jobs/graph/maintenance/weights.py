"""SQL of weighted rows: those of a change, with a weight in ``__w``."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.graph.maintenance.clauses import aliased
from spark_jobs.graph.maintenance.relation import WEIGHT
from spark_jobs.graph.maintenance.scope import named


def netted(
    query: exp.Query, columns: tuple[str, ...], *, signed: Mapping[str, str] | None = None
) -> exp.Select:
    """The weights of equal rows summed up, where the sum is not 0.

    Args:
        query: rows with a weight.
        columns: their columns.
        signed: columns whose 0.0 and -0.0 are told apart, with their types; "" if unknown. A GROUP
            BY turns -0.0 into 0.0, and what reads the rows may make a text of it.
    """
    signed = signed or {}
    names = [_any_of(one, signed[one]) if one in signed else named(one) for one in columns]
    total = exp.alias_(exp.Sum(this=named(WEIGHT)), "__sum")
    summed = exp.select(*names, total).from_(aliased(query, "t"), copy=False)
    texts = [exp.cast(named(one), exp.DType.TEXT) for one in columns if one in signed]
    summed = summed.group_by(*map(named, columns), *texts, copy=False)
    return (
        exp.select(*map(named, columns), exp.alias_(named("__sum"), WEIGHT))
        .from_(aliased(summed, "t"), copy=False)
        .where(exp.NEQ(this=named("__sum"), expression=number(0)), copy=False)
    )


def _any_of(column: str, kind: str) -> exp.Expr:
    """The one value that a column has in a group, which the grouping has not touched."""
    # Not every value of another type has a maximum.
    plain = kind in {"float", "double"}
    value = exp.Max(this=named(column)) if plain else exp.AnyValue(this=named(column))
    return exp.alias_(value, column)


def negated(query: exp.Query, columns: tuple[str, ...]) -> exp.Select:
    """A change with negated weights."""
    minus = exp.Neg(this=named(WEIGHT))
    return exp.select(*map(named, columns), exp.alias_(minus, WEIGHT)).from_(aliased(query, "t"))


def number(value: int) -> exp.Expr:
    """A numeric literal."""
    return exp.Literal.number(value)

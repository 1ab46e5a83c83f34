"""Rows that differ in floating-point numbers only: whether they are equal but for rounding.

The sum of doubles depends on the order in which they are added, so two right results may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.gold.compute.difference import multiset_difference

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KINDS = frozenset({"float", "double"})


@dataclass(frozen=True)
class Closeness:
    """Rows of two multisets that were paired.

    Attributes:
        rows: how many pairs are not equal to the last bit.
        largest: the largest relative difference in any of their columns.
    """

    rows: int
    largest: float


def float_columns(frame: DataFrame) -> tuple[str, ...]:
    """The columns of FLOAT and DOUBLE; floats inside of arrays and structs are not among them."""
    fields = frame.schema.fields
    return tuple(one.name for one in fields if one.dataType.simpleString() in _KINDS)


def close_rows(expected: DataFrame, actual: DataFrame, *, tolerance: float) -> Closeness | None:
    """Pair the rows of two multisets that are alike in all other columns.

    Rows that are alike are paired in the order of their floats, each float column being the first
    one in turn. So a pair is never accepted that differs by more, and a table is refused wrongly
    only where rows alike in all else are as near to each other as they are to their partners.

    Args:
        expected: a multiset.
        actual: another, with the same columns.
        tolerance: the largest relative difference of two floats that count as equal.

    Returns:
        None where some row has no partner.
    """
    floats = set(float_columns(expected))
    kinds = [field.dataType.simpleString() for field in expected.schema.fields]
    if not floats or any("map<" in kind or "variant" in kind for kind in kinds):
        return None
    plain = [f"c{index}" for index in range(len(expected.columns))]
    rounded = [at for at, name in zip(plain, expected.columns, strict=True) if name in floats]
    exact = [at for at in plain if at not in rounded]
    difference = multiset_difference(expected, actual).toDF(*plain, "weight").persist()
    try:
        for first in rounded:
            order = [first, *(one for one in rounded if one != first)]
            found = _paired(difference, exact, order)
            if found is None or found.largest <= tolerance:
                return found
        return None
    finally:
        difference.unpersist()


def _paired(difference: DataFrame, exact: list[str], order: list[str]) -> Closeness | None:
    """Pair rows in an order; None where the two sides have not as many rows alike."""
    from pyspark.sql import Window  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    sides = difference.select(
        *exact,
        F.struct(*order).alias("floats"),
        (F.col("weight") > 0).alias("here"),
        F.explode(F.expr("sequence(1L, abs(weight))")).alias("copy"),
    )
    among = Window.partitionBy(*exact, "here").orderBy("floats")
    pairs = (
        sides.withColumn("place", F.row_number().over(among))
        .groupBy(*exact, "place")
        .agg(
            F.max(F.when(~F.col("here"), F.col("floats"))).alias("wanted"),
            F.max(F.when(F.col("here"), F.col("floats"))).alias("found"),
        )
    )
    apart = [_apart(F.col(f"wanted.{one}"), F.col(f"found.{one}")) for one in order]
    alone = F.col("wanted").isNull() | F.col("found").isNull()
    counted = pairs.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count(F.when(alone, 1)).alias("alone"),
        F.max(F.array_max(F.array(*apart))).alias("largest"),
    ).collect()[0]
    if counted["alone"]:
        return None
    return Closeness(rows=int(counted["rows"]), largest=float(counted["largest"] or 0.0))


def _apart(left: Column, right: Column) -> Column:
    """The relative difference; infinite where a number is compared with NULL, NaN or infinity."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    one, other = left.cast("double"), right.cast("double")
    infinity = F.lit(float("inf"))
    odd = F.lit(False)  # noqa: FBT003 - a literal of SQL
    for value in (one, other):
        odd = odd | value.isNull() | F.isnan(value) | (F.abs(value) == infinity)
    apart = F.abs(one - other) / F.greatest(F.abs(one), F.abs(other))
    return F.when(one.eqNullSafe(other), 0.0).when(odd, infinity).otherwise(apart)

"""Decides whether rows that differ only in floats are equal except for rounding.

The sum of doubles depends on the order of addition, so two correct results may differ.
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
    """The paired rows of two multisets.

    Attributes:
        rows: pairs that are not bitwise equal.
        largest: largest relative difference in any float column.
    """

    rows: int
    largest: float


def float_columns(frame: DataFrame) -> tuple[str, ...]:
    """Names of the FLOAT and DOUBLE columns; nested floats are not included."""
    fields = frame.schema.fields
    return tuple(one.name for one in fields if one.dataType.simpleString() in _KINDS)


def close_rows(expected: DataFrame, actual: DataFrame, *, tolerance: float) -> Closeness | None:
    """Pair the rows of two multisets that agree in all other columns.

    Rows that agree are paired in the order of their floats, with each float column as the first
    sort column in turn. So no pair that differs by more is accepted. A table is refused wrongly
    only if rows that agree otherwise lie as close to each other as to their partners.

    Args:
        expected: a multiset of rows.
        actual: another one, with the same columns.
        tolerance: largest relative difference of floats that count as equal.

    Returns:
        None if a row has no partner within the tolerance, if there is no float column, or if a
            column cannot be grouped.
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
    """Pair rows in the given order; None if the sides have different numbers of equal rows."""
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
    """The relative difference; infinite if only one side is NULL, NaN or infinite."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    one, other = left.cast("double"), right.cast("double")
    infinity = F.lit(float("inf"))
    odd = F.lit(False)  # noqa: FBT003 - a literal of SQL
    for value in (one, other):
        odd = odd | value.isNull() | F.isnan(value) | (F.abs(value) == infinity)
    apart = F.abs(one - other) / F.greatest(F.abs(one), F.abs(other))
    return F.when(one.eqNullSafe(other), 0.0).when(odd, infinity).otherwise(apart)

"""Comparing two results as multisets: NULLs are equal to NULLs, and duplicates count."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.graph.sql import MASK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WEIGHT = "__weight"


@dataclass(frozen=True)
class Difference:
    """How many rows only one side has, duplicates counted."""

    missing: int
    unexpected: int

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)


def same_columns(left: DataFrame, right: DataFrame) -> bool:
    """Whether names and types agree, in order; nullability and comments are ignored."""
    return [(f.name, f.dataType) for f in left.schema.fields] == [
        (f.name, f.dataType) for f in right.schema.fields
    ]


def has_incomparable(frame: DataFrame) -> bool:
    """Whether a column is of a type whose values Spark cannot group or compare."""
    kinds = [field.dataType.simpleString() for field in frame.schema.fields]
    return any("map<" in kind or "variant" in kind for kind in kinds)


def multiset_difference(expected: DataFrame, actual: DataFrame) -> DataFrame:
    """The rows whose counts differ.

    One aggregation replaces EXCEPT ALL in both directions: a row is in neither difference exactly
    when its weights sum to zero.

    Args:
        expected: a multiset of rows.
        actual: another one, with as many columns of the same types.

    Returns:
        the columns of ``expected``, and last ``__weight``: the extra copies in ``actual``, negative
            if copies are missing.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    names = expected.columns
    # Temporary names, because a user's column may have any name.
    plain = [f"c{index}" for index in range(len(names))]
    weighed = (
        expected.toDF(*plain)
        .withColumn(_WEIGHT, F.lit(-1))
        .unionAll(actual.toDF(*plain).withColumn(_WEIGHT, F.lit(1)))
    )
    differing = (
        weighed.groupBy(*plain).agg(F.sum(_WEIGHT).alias(_WEIGHT)).where(F.col(_WEIGHT) != 0)
    )
    return differing.toDF(*names, _WEIGHT)


def count_difference(expected: DataFrame, actual: DataFrame) -> Difference:
    """Count the missing and the unexpected rows of ``actual``, in one Spark job.

    For the arguments see ``multiset_difference``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    weight = F.col(_WEIGHT)
    counted = (
        multiset_difference(expected, actual)
        .agg(
            F.coalesce(F.sum(F.greatest(-weight, F.lit(0))), F.lit(0)).alias("missing"),
            F.coalesce(F.sum(F.greatest(weight, F.lit(0))), F.lit(0)).alias("unexpected"),
        )
        .collect()[0]
    )
    return Difference(missing=int(counted["missing"]), unexpected=int(counted["unexpected"]))


def differing_rows(
    expected: DataFrame,
    actual: DataFrame,
    *,
    limit: int,
    hidden: Collection[str] = frozenset(),
) -> tuple[dict[str, str | None], ...]:
    """Some of the rows that differ.

    Args:
        expected: a multiset of rows.
        actual: another one, with as many columns of the same types.
        limit: the most rows.
        hidden: columns whose values are masked, in lower case.

    Returns:
        each row as {column: text}; the key "" has the signed count.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    names = expected.columns
    rows = multiset_difference(expected, actual).toDF(
        *[f"c{i}" for i in range(len(names))], _WEIGHT
    )
    texts = [
        F.to_json(F.struct(F.col(f"c{i}").alias("v"))).alias(f"c{i}") for i in range(len(names))
    ]
    return tuple(
        {
            **{
                name: _plain(row[index], hidden=name.lower() in hidden)
                for index, name in enumerate(names)
            },
            "": f"{row[len(names)]:+d}",
        }
        for row in rows.select(*texts, _WEIGHT).orderBy(*texts).limit(limit).collect()
    )


def _plain(text: str, *, hidden: bool) -> str | None:
    """The value in ``{"v":value}`` as text; None where it was NULL and left out."""
    if text == "{}":
        return None
    if hidden:
        return MASK
    value = text[len('{"v":') : -1]
    return value[1:-1] if value.startswith('"') else value

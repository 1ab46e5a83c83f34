"""Compares some hash buckets of two multisets, by row counts and sums of hashes."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spark_jobs.gold.verify.tolerance import float_columns
from spark_jobs.storage.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BUCKETS = 64
COMPARED = 4
# Smaller tables are compared in all buckets, because a few would hold hardly any rows.
SMALL = 10_000
_BUCKET = "__bucket"
_NESTED = ("array<", "struct<", "map<", "variant")


@dataclass(frozen=True)
class Bucket:
    """A compared bucket: its rows on both sides, and whether their hashes agree."""

    number: int
    expected: int
    actual: int
    agrees: bool


@dataclass(frozen=True)
class Sample:
    """The buckets that were compared.

    Attributes:
        by: columns whose hash assigns a row to a bucket; empty: one bucket has all rows.
        of: the number of buckets.
    """

    by: tuple[str, ...]
    of: int
    buckets: tuple[Bucket, ...]

    @property
    def rows(self) -> int:
        """Rows of the table that were compared."""
        return sum(one.actual for one in self.buckets)

    @property
    def differing(self) -> tuple[int, ...]:
        """Numbers of the buckets that differ, to be compared row by row."""
        return tuple(one.number for one in self.buckets if not one.agrees)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, and ``rows``, the number of rows that were compared."""
        return {
            "by": list(self.by),
            "of": self.of,
            "rows": self.rows,
            "buckets": [vars(one) for one in self.buckets],
        }


def any_buckets(rows: int | None) -> tuple[int, ...]:
    """Random buckets to compare, for a table with ``rows`` rows."""
    if rows is not None and rows < SMALL:
        return tuple(range(BUCKETS))
    return tuple(sorted(random.SystemRandom().sample(range(BUCKETS), COMPARED)))


def bucket_columns(frame: DataFrame, key: Sequence[str]) -> tuple[str, ...]:
    """Columns that assign a row to a bucket: the key or all columns, without floats."""
    floats = set(float_columns(frame))
    kinds = {one.name: one.dataType.simpleString() for one in frame.schema.fields}
    fitting = [one for one in frame.columns if one not in floats and not _nested(kinds[one])]
    lower = {one.lower() for one in key}
    return tuple(one for one in fitting if one.lower() in lower) or tuple(fitting)


def in_buckets(frame: DataFrame, by: Sequence[str], numbers: Collection[int]) -> DataFrame:
    """The rows of the buckets with these numbers; all rows without columns or numbers.

    Args:
        frame: any rows.
        by: from ``bucket_columns``.
        numbers: of the buckets.
    """
    return frame.where(_bucket(frame, by).isin(*numbers)) if by and numbers else frame


def sample_of(
    expected: DataFrame, actual: DataFrame, *, key: Sequence[str], numbers: Sequence[int]
) -> Sample:
    """Count the rows and add up the hashes of some buckets, in one job.

    Args:
        expected: a multiset of rows.
        actual: another one, with the same columns.
        key: columns that identify a row, if known.
        numbers: numbers of the buckets; if no column is hashable there is only one bucket.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    by = bucket_columns(expected, key)
    numbers = numbers if by else (0,)
    nested = any(_nested(one.dataType.simpleString()) for one in expected.schema.fields)
    sides = [
        in_buckets(frame, by, numbers).select(
            _bucket(frame, by).alias(_BUCKET),
            _hash(frame).cast("decimal(20,0)").alias("hash")
            if not nested
            else F.lit(None).cast("decimal(20,0)").alias("hash"),
            F.lit(at).alias("side"),
        )
        for at, frame in enumerate((expected, actual))
    ]
    columns = []
    for at, name in enumerate(("expected", "actual")):
        mine = F.when(F.col("side") == at, F.col("hash"))
        columns += [
            F.count(F.when(F.col("side") == at, 1)).alias(name),
            F.sum(mine.cast("decimal(38,0)")).alias(f"{name}_hash"),
        ]
    found = {
        row[_BUCKET]: row
        for row in sides[0].unionAll(sides[1]).groupBy(_BUCKET).agg(*columns).collect()
    }
    buckets = []
    for number in numbers:
        row = found.get(number)
        if row is None:
            buckets.append(Bucket(number, 0, 0, agrees=True))
            continue
        same = row["expected"] == row["actual"] and row["expected_hash"] == row["actual_hash"]
        # Hashes ignore NULLs inside nested values, so such rows are compared directly.
        agrees = same and not nested
        buckets.append(Bucket(number, int(row["expected"]), int(row["actual"]), agrees))
    return Sample(by, BUCKETS if by else 1, tuple(buckets))


def _bucket(frame: DataFrame, by: Sequence[str]) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if not by:
        return F.lit(0).cast("long")
    return F.pmod(_hash(frame.select(*map(quoted, by))), F.lit(BUCKETS))


def _hash(frame: DataFrame) -> Column:
    """A hash of all columns that also depends on which are NULL, unlike Spark's own."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = [F.col(quoted(name)) for name in frame.columns]
    return F.xxhash64(*columns, *(one.isNull() for one in columns))


def _nested(kind: str) -> bool:
    return kind.startswith(_NESTED)

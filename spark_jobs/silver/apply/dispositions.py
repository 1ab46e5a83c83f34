"""Computes the disposition of each record of a batch: pure functions of the batch and the tables.

A killed batch runs again after some of its writes. A table row with the record's own coordinates
means that this very batch applied it, and the disposition is the same again; a row with other
coordinates comes from an earlier record.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from spark_jobs.names import Disposition
from spark_jobs.silver.apply.truncations import Truncation
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.rows import ARRIVED_AT, CANDIDATE, COORDINATES, EVENT_ID
from spark_jobs.silver.parse.typed import SEQUENCE

DISPOSITION = "__disposition"
# Whether the tables had the event or the key before this batch.
KNOWN = "__known"
_RANK = "__rank"
_HELD = "__held"


def append_dispositions(
    rows: DataFrame, table: DataFrame | None, *, identity: str, expired: Column | None = None
) -> DataFrame:
    """Dispositions for an event table: the first record of each event id is applied.

    Args:
        rows: the persisted batch, as ``silver_rows`` returns it.
        table: the silver table; None if it is empty.
        identity: the column with the event id.
        expired: whether a row has expired; None if rows never expire.

    Returns:
        the batch with ``DISPOSITION`` and ``KNOWN``.
    """
    candidate = sf.col(CANDIDATE)
    if table is None:
        joined = rows.withColumn(_HELD, _nothing(COORDINATES))
    else:
        ids = rows.where(CANDIDATE).select(EVENT_ID)
        held = table.select(
            sf.col(identity).cast("string").alias(EVENT_ID),
            _struct(COORDINATES).alias(_HELD),
        ).join(sf.broadcast(ids), EVENT_ID, "left_semi")
        joined = rows.join(sf.broadcast(held), EVENT_ID, "left")
    own = _same_coordinates()
    # Partitions have no common order; ordering by arrival does not depend on the batches. A record
    # that the table has stays the first, also where bronze was restored with other arrivals.
    order = Window.partitionBy(EVENT_ID, CANDIDATE).orderBy(sf.desc(own), ARRIVED_AT, *COORDINATES)
    joined = joined.withColumn(_RANK, sf.row_number().over(order))
    disposition = (
        common_disposition()
        .when(candidate & (sf.col(_RANK) > 1), str(Disposition.DUPLICATE))
        .when(candidate & sf.col(_HELD).isNotNull() & ~own, str(Disposition.DUPLICATE))
    )
    if expired is not None:
        # Rows that are in the table already are deleted by a commit of their own.
        disposition = disposition.when(
            candidate & sf.col(_HELD).isNull() & expired, str(Disposition.IGNORED)
        )
    return _annotated(joined, disposition.otherwise(str(Disposition.APPLIED)))


def upsert_dispositions(
    rows: DataFrame,
    state: Sequence[DataFrame],
    *,
    keys: Sequence[str],
    truncation: Truncation | None = None,
) -> DataFrame:
    """Dispositions for a table of current rows: the last change of each key is applied.

    Args:
        rows: the persisted batch, as ``silver_rows`` returns it.
        state: the silver table and its tombstones; empty tables are left out.
        keys: the columns that identify a row; NULL in a truncation.
        truncation: the last truncation, including the batch's own.

    Returns:
        the batch with ``DISPOSITION`` and ``KNOWN``.
    """
    candidate = sf.col(CANDIDATE)
    partition = Window.partitionBy(*keys, CANDIDATE)
    order = partition.orderBy(sf.desc(SEQUENCE), *COORDINATES)
    ranked = rows.withColumns(
        {
            _RANK: sf.row_number().over(order),
            "__newest": sf.max(SEQUENCE).over(partition),
        }
    )
    place = (SEQUENCE, *COORDINATES)
    if state:
        touched = rows.where(CANDIDATE).select(*keys)
        held = (
            reduce(DataFrame.unionByName, [one.select(*keys, *place) for one in state])
            .join(sf.broadcast(touched), list(keys), "left_semi")
            .groupBy(*keys)
            .agg(sf.max(_struct(place)).alias(_HELD))
        )
        joined = ranked.join(sf.broadcast(held), list(keys), "left")
    else:
        joined = ranked.withColumn(_HELD, _nothing(place))
    sequence, before = sf.col(SEQUENCE), sf.col(f"{_HELD}.{SEQUENCE}")
    duplicate, superseded = str(Disposition.DUPLICATE), str(Disposition.SUPERSEDED)
    disposition = common_disposition()
    if truncation is not None:
        own = [sf.col(name) == getattr(truncation, name.strip("_")) for name in COORDINATES]
        repeated = (sequence == truncation.sequence) & ~(own[0] & own[1])
        disposition = disposition.when(candidate & (sequence < truncation.sequence), superseded)
        disposition = disposition.when(candidate & repeated, duplicate)
    disposition = (
        disposition.when(candidate & (sequence < sf.col("__newest")), superseded)
        .when(candidate & (sf.col(_RANK) > 1), duplicate)
        .when(candidate & (sequence < before), superseded)
        .when(candidate & (sequence == before) & ~_same_coordinates(), duplicate)
        .otherwise(str(Disposition.APPLIED))
    )
    return _annotated(joined, disposition).drop("__newest")


def common_disposition() -> Column:
    """The dispositions that do not depend on other records, as a CASE to be continued."""
    return sf.when(sf.col(PROBLEM).isNotNull(), str(Disposition.QUARANTINED)).when(
        ~sf.col(CANDIDATE), str(Disposition.IGNORED)
    )


def _annotated(joined: DataFrame, disposition: Column) -> DataFrame:
    return joined.withColumns({DISPOSITION: disposition, KNOWN: sf.col(_HELD).isNotNull()}).drop(
        _RANK, _HELD
    )


def _struct(names: Sequence[str]) -> Column:
    return sf.struct(*(sf.col(name) for name in names))


def _nothing(names: Sequence[str]) -> Column:
    # A NULL of the struct's type.
    return sf.when(sf.lit(False), _struct(names))  # noqa: FBT003


def _same_coordinates() -> Column:
    same = [sf.col(f"{_HELD}.{name}") == sf.col(name) for name in COORDINATES]
    return sf.coalesce(same[0] & same[1], sf.lit(False))  # noqa: FBT003

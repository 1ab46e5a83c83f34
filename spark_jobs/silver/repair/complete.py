"""Checks that bronze still has all records that a silver table was built from."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.store.releases import PLACE
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.reader import read

MOST_RUNS = 1000


def missing_records(
    spark: SparkSession, tables: SilverTables, bronze: DataFrame, *, counted: int
) -> list[str]:
    """Ranges of offsets that a silver table was built from and bronze lacks; empty if complete.

    Args:
        spark: any session.
        tables: the silver table and its helper tables.
        bronze: the records that the table has applied; ``partition`` and ``offset`` are read.
        counted: number of records in its batch counts.
    """
    places = bronze.select(*PLACE).localCheckpoint(eager=False)
    tops = places.groupBy(PLACE[0]).agg(sf.max(PLACE[1]).alias("top"))
    lost = (
        _made_of(spark, tables)
        .distinct()
        .join(places, list(PLACE), "left_anti")
        .join(sf.broadcast(tops), PLACE[0], "left")
        .where(sf.col("top").isNull() | (sf.col(PLACE[1]) < sf.col("top")))
    )
    found = _runs(lost)
    short = counted - places.count()
    if found or short <= 0:
        return found
    return _holes(places) or [f"{short} records after the newest one in bronze"]


def _made_of(spark: SparkSession, tables: SilverTables) -> DataFrame:
    parts = [read(spark, tables.quarantine).select(*PLACE)]
    match tables.entry.apply:
        case ApplyMode.APPEND:
            rows = [tables.table]
        case ApplyMode.UPSERT:
            rows = [tables.table, tables.tombstones]
        case ApplyMode.HISTORY:
            rows = [tables.changes]
    named = [sf.col(new).alias(old) for old, new in zip(PLACE, COORDINATES, strict=True)]
    parts += [read(spark, place).select(*named) for place in rows]
    return reduce(DataFrame.unionByName, parts)


def _runs(places: DataFrame) -> list[str]:
    partition, offset = PLACE
    number = sf.row_number().over(Window.partitionBy(partition).orderBy(offset))
    runs = (
        places.withColumn("run", sf.col(offset) - number)
        .groupBy(partition, "run")
        .agg(sf.min(offset).alias("first"), sf.max(offset).alias("last"))
    )
    return _as_text(runs)


def _holes(places: DataFrame) -> list[str]:
    """Gaps between the existing offsets; missing records are among them."""
    partition, offset = PLACE
    before = sf.lag(offset, 1, -1).over(Window.partitionBy(partition).orderBy(offset))
    runs = places.withColumn("first", before + 1).where(sf.col(offset) > sf.col("first"))
    return _as_text(runs.select(partition, "first", (sf.col(offset) - 1).alias("last")))


def _as_text(runs: DataFrame) -> list[str]:
    partition = PLACE[0]
    found = runs.orderBy(partition, "first").limit(MOST_RUNS).collect()
    return [f"partition {one[partition]}: {one['first']} to {one['last']}" for one in found]

"""Applies batches in this process and by Spark alone, and compares what they wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.state.batches import SilverBatch
from spark_jobs.storage import policy, tables
from spark_jobs.storage.lake import Lake
from tests.spark.silver.world import Record, applier, bronze


def started(
    spark: SparkSession, tmp_path: Path, source: SourceEntry, entry: SilverEntry
) -> tuple[BatchApplier, list[SilverBatch]]:
    record: list[SilverBatch] = []
    found = applier(Lake(str(tmp_path)), source, entry, record=record)
    found.tables.create(spark, source)
    return found, record


def apply_both_ways(
    spark: SparkSession,
    here: BatchApplier,
    there: BatchApplier,
    history: Sequence[list[Record]],
) -> None:
    """Apply batches in this process and by Spark alone; all tables are equal then.

    The last batch is applied twice.
    """
    first = 0
    there = replace(there, few=policy.NOTHING)
    for number, records in enumerate(history):
        frame = bronze(spark, records, first=first)
        for _ in range(2 if records is history[-1] else 1):
            here.apply(frame, number)
            there.apply(frame, number)
        first += len(records)
    for mine, theirs in zip(here.tables.places, there.tables.places, strict=True):
        # By the reader of the other writer.
        assert multiset(tables.read(spark, mine)) == multiset(tables.read(spark, theirs))


def feed(spark: SparkSession, location: str) -> Counter[str]:
    """All changes of a table since it was made."""
    changes = tables.changes(spark, location, after=0, upto=DeltaTable(location).version())
    return multiset(changes.drop("_commit_version", "_commit_timestamp"))


def written(location: str) -> list[dict[str, Any]]:
    """The commits of a table after the one that made it."""
    return DeltaTable(location).history()[:-1]


def multiset(frame: DataFrame) -> Counter[str]:
    """The rows as text; a map and a NaN have no other order."""
    return Counter(row[0] for row in frame.select(sf.to_json(sf.struct("*"))).collect())

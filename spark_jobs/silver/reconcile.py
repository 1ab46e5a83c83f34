"""Bronze against silver: does every bronze record have exactly one end, and do the tables agree?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode, SilverEntry
from spark_jobs.names import BronzeColumn, SilverColumn
from spark_jobs.silver.tables import SilverTables
from spark_jobs.state.batches import SilverTotals
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import table_version
from spark_jobs.storage.tables import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True)
class SilverCount:
    """What became of one silver table's bronze records.

    Attributes:
        bronze: rows of the bronze table.
        totals: the counts that the batches recorded.
        rows: rows of the silver table.
        quarantined: rows of its quarantine.
        shared: records that stand in silver and quarantine, or twice in one of them.
    """

    entry: SilverEntry
    bronze: int
    totals: SilverTotals
    rows: int
    quarantined: int
    shared: int

    @property
    def behind(self) -> int:
        """Bronze records that silver has not taken up yet."""
        return max(self.bronze - self.totals.records, 0)

    @property
    def problems(self) -> tuple[str, ...]:
        """The equations that do not hold, each in one line."""
        totals = self.totals
        checks = {
            f"{totals.records} records taken up, {totals.accounted} have an end": (
                totals.records == totals.accounted
            ),
            f"{totals.records} records taken up, bronze has only {self.bronze}": (
                totals.records <= self.bronze
            ),
            f"{totals.quarantined} records quarantined, the quarantine holds "
            f"{self.quarantined}": totals.quarantined == self.quarantined,
            f"{self.shared} records stand twice in silver and quarantine": self.shared == 0,
        }
        if self.entry.apply is ApplyMode.APPEND:
            line = f"{totals.applied} records applied, silver has {self.rows} rows"
            checks[line] = totals.applied == self.rows
        return tuple(line for line, holds in checks.items() if not holds)


def reconcile_silver(
    spark: SparkSession,
    lake: Lake,
    entries: Sequence[SilverEntry],
    *,
    bronze: Mapping[str, int],
    totals: Mapping[str, SilverTotals],
) -> list[SilverCount]:
    """Count every silver table with its quarantine, in one Spark job for all of them.

    Args:
        spark: any session.
        lake: where the tables lie.
        entries: the silver tables.
        bronze: rows of each source's bronze table.
        totals: recorded counts of each silver table, of its present epoch.
    """
    counted = _counted(spark, lake, entries)
    return [
        SilverCount(
            entry=entry,
            bronze=bronze[entry.source],
            totals=totals[entry.name],
            rows=counted[entry.name]["silver"] if entry.name in counted else 0,
            quarantined=counted[entry.name]["quarantine"] if entry.name in counted else 0,
            shared=counted[entry.name]["shared"] if entry.name in counted else 0,
        )
        for entry in entries
    ]


def _counted(spark: SparkSession, lake: Lake, entries: Sequence[SilverEntry]) -> dict[str, Row]:
    counts = [
        _count(spark, entry, SilverTables.of(lake, entry))
        for entry in entries
        if table_version(lake.location(entry.table_name)) is not None
    ]
    if not counts:
        return {}
    rows = reduce(lambda one, other: one.unionAll(other), counts).collect()
    return {row["name"]: row for row in rows}


def _count(spark: SparkSession, entry: SilverEntry, tables: SilverTables) -> DataFrame:
    applied = read(spark, tables.table).select(
        sf.col(SilverColumn.PARTITION).alias("partition"),
        sf.col(SilverColumn.OFFSET).alias("offset"),
        sf.lit(1).alias("silver"),
    )
    rejected = read(spark, tables.quarantine).select(
        BronzeColumn.PARTITION, BronzeColumn.OFFSET, sf.lit(0).alias("silver")
    )
    return (
        applied.unionAll(rejected)
        .groupBy(sf.lit(entry.name).alias("name"))
        .agg(
            sf.sum("silver").alias("silver"),
            sf.sum(1 - sf.col("silver")).alias("quarantine"),
            (sf.count("*") - sf.count_distinct("partition", "offset")).alias("shared"),
        )
    )

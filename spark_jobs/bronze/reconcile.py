"""Kafka's offsets against bronze: is every record of every topic there, and there once?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from spark_jobs.bronze.errors import OffsetRange
from spark_jobs.bronze.records import count_records
from spark_jobs.bronze.topics import TopicFacts, Topics
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import table_version
from spark_jobs.storage.tables import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True)
class BronzeCount:
    """One source's records, counted in Kafka and in bronze.

    Attributes:
        kafka: records that Kafka ever acknowledged, up to the newest offset.
        bronze: rows of the bronze table.
        behind: offsets that bronze has still to read.
        repeated: rows whose coordinates another row has too.
        missing: ranges that bronze left out although Kafka holds records in them.
    """

    source: str
    kafka: int
    bronze: int
    behind: int
    repeated: int
    missing: tuple[OffsetRange, ...]

    @property
    def balanced(self) -> bool:
        """Whether all that was read is there once, and nothing is left to read."""
        return not (self.behind or self.repeated or self.missing)


def reconcile_bronze(
    spark: SparkSession, lake: Lake, sources: Sequence[SourceEntry], *, topics: Topics
) -> list[BronzeCount]:
    """Count every Kafka source, in one Spark job for all of them.

    Raises:
        KafkaUnreachableError: no broker answers.
        TopicMissingError: a source's topic does not exist.
    """
    # Bronze first: what arrives in between then counts as still to read, not as missing.
    landed = _landed(spark, lake, sources)
    return [
        _compare(spark, lake, source, facts=topics.facts(source.topic or ""), rows=landed)
        for source in sources
    ]


def _landed(
    spark: SparkSession, lake: Lake, sources: Sequence[SourceEntry]
) -> dict[tuple[str, int], Row]:
    offset = sf.col(BronzeColumn.OFFSET)
    counts = [
        read(spark, lake.location(source.table_name))
        .groupBy(sf.lit(source.name).alias("source"), BronzeColumn.PARTITION)
        .agg(
            sf.count("*").alias("rows"),
            sf.count_distinct(offset).alias("offsets"),
            sf.min(offset).alias("first"),
            sf.max(offset).alias("last"),
        )
        for source in sources
        if table_version(lake.location(source.table_name)) is not None
    ]
    if not counts:
        return {}
    rows = reduce(lambda one, other: one.unionAll(other), counts).collect()
    return {(row["source"], row[BronzeColumn.PARTITION]): row for row in rows}


def _compare(
    spark: SparkSession,
    lake: Lake,
    source: SourceEntry,
    *,
    facts: TopicFacts,
    rows: dict[tuple[str, int], Row],
) -> BronzeCount:
    kafka = bronze = behind = repeated = 0
    missing: list[OffsetRange] = []
    for partition, end in sorted(facts.end.items()):
        row = rows.get((source.name, partition))
        kafka += end
        if row is None:
            behind += end - facts.first[partition]
            continue
        bronze += row["rows"]
        repeated += row["rows"] - row["offsets"]
        read_to = row["last"] + 1
        # Past what was read, offsets without a record (markers of transactions) are no lag.
        unread = OffsetRange(partition, read_to, end)
        behind += count_records(facts.topic, unread, servers=facts.servers) if end > read_to else 0
        if row["offsets"] < read_to:
            frame = read(spark, lake.location(source.table_name))
            gaps = _gaps(frame, partition, first=facts.first[partition])
            missing += [
                gap for gap in gaps if count_records(facts.topic, gap, servers=facts.servers)
            ]
    return BronzeCount(source.name, kafka, bronze, behind, repeated, tuple(missing))


def _gaps(bronze: DataFrame, partition: int, *, first: int) -> list[OffsetRange]:
    """Ranges of offsets without a row, among those that Kafka still holds."""
    offset = sf.col(BronzeColumn.OFFSET)
    offsets = bronze.where(
        (sf.col(BronzeColumn.PARTITION) == partition) & (offset >= first)
    ).select(offset)
    before = sf.lag(offset, 1, first - 1).over(Window.orderBy(offset))
    gaps = offsets.withColumn("before", before).where(offset > sf.col("before") + 1).collect()
    return [OffsetRange(partition, gap["before"] + 1, gap[BronzeColumn.OFFSET]) for gap in gaps]

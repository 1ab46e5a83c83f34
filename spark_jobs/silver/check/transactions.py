"""Checks that bronze has all changes of each transaction, by the counts that Debezium sends.

A connector that is killed before it has stored the position of its first snapshot takes another
one. Kafka may know the ends of transactions between the two without their changes, and these never
come: the later snapshot has their rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import BronzeColumn
from spark_jobs.silver.parse.casting import text_at
from spark_jobs.silver.parse.documents import (
    DOCUMENT,
    RAW_COLUMNS,
    ROOT,
    unwrapped,
    with_documents,
)

# No size limit: bronze has changes that are too long for silver too.
MOST_BYTES = 2**31 - 1
# Debezium's marks of the rows of a snapshot, and of the last one of a table.
_LAST_ROWS = ("last_in_data_collection", "last")
_SNAPSHOT_ROWS = ("first", "first_in_data_collection", "true", *_LAST_ROWS)


@dataclass(frozen=True)
class IncompleteTransaction:
    """A transaction with changes that bronze lacks, in one table.

    Attributes:
        number: the database's transaction id.
        changes: number of its changes.
        held: number of them that bronze has.
        in_snapshot: whether a later snapshot of the table has read the rows that it left.
    """

    number: str
    changes: int
    held: int
    in_snapshot: bool = False

    def __str__(self) -> str:
        return f"{self.number} ({self.held} of {self.changes})"


@dataclass(frozen=True)
class _Snapshot:
    """A completed snapshot of a table.

    Attributes:
        transaction: the id of the transaction that read it.
        began: when its first record was sent, in milliseconds since 1970.
    """

    transaction: int
    began: int


def incomplete_transactions(
    bronze: DataFrame, changes: Mapping[str, int], *, told_at: Mapping[str, int], since: int
) -> list[IncompleteTransaction]:
    """The transactions with changes that bronze lacks, in the order of their numbers.

    Args:
        bronze: records of one table, with bronze's columns.
        changes: number of changes to that table, by transaction id.
        told_at: by transaction id, when Kafka was told of its end.
        since: time of the first of them. Times are in milliseconds since 1970.
    """
    if not changes:
        return []
    spark = bronze.sparkSession
    expected = spark.createDataFrame(list(changes.items()), "number string, changes bigint")
    # Records arrive after their commit; one day allows for different clocks.
    first = sf.date_sub(sf.to_date(sf.timestamp_millis(sf.lit(since))), 1)
    recent = with_documents(
        bronze.where(sf.col(BronzeColumn.ARRIVAL_DATE) >= first), max_bytes=MOST_BYTES
    )
    change = unwrapped(DOCUMENT)
    numbers = recent.select(
        sf.split(text_at(change, f"{ROOT}.transaction.id"), ":")[0].alias("number"),
        text_at(change, f"{ROOT}.transaction.total_order").alias("place"),
    )
    held = numbers.groupBy("number").agg(sf.countDistinct("place").alias("held"))
    missing = (
        expected.join(held, "number", "left")
        .withColumn("held", sf.coalesce("held", sf.lit(0)))
        .where("held < changes")
        .orderBy(sf.col("number").cast("bigint"))
    ).collect()
    snapshots = _completed_snapshots(recent, change) if missing else []
    return [
        IncompleteTransaction(
            number, expected, held, in_snapshot=_is_in_any(snapshots, number, told_at[number])
        )
        for number, expected, held in missing
    ]


def _completed_snapshots(records: DataFrame, change: Column) -> list[_Snapshot]:
    """The completed snapshots of a table; incremental ones, which have no one moment, are not."""
    kind = text_at(change, f"{ROOT}.source.snapshot")
    rows = records.select(
        text_at(change, f"{ROOT}.source.txId").try_cast("bigint").alias("transaction"),
        kind.alias("kind"),
        sf.unix_millis(RAW_COLUMNS[BronzeColumn.TIMESTAMP]).alias("sent"),
    ).where(sf.col("kind").isin(*_SNAPSHOT_ROWS) & sf.col("transaction").isNotNull())
    last = sf.bool_or(sf.col("kind").isin(*_LAST_ROWS)).alias("completed")
    snapshots = rows.groupBy("transaction").agg(sf.min("sent").alias("began"), last)
    return [_Snapshot(*row[:2]) for row in snapshots.where("completed").collect()]


def _is_in_any(snapshots: list[_Snapshot], number: str, told_at: int) -> bool:
    """Whether a snapshot began after a transaction had ended.

    A connector sends nothing else while it takes a snapshot. A transaction with a higher number
    began after the snapshot, whatever the clocks say.
    """
    return any(one.transaction > int(number) and one.began > told_at for one in snapshots)

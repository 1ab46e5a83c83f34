"""Checks that bronze has all changes of each transaction, by the counts that Debezium sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import BronzeColumn
from spark_jobs.silver.parse.casting import text_at
from spark_jobs.silver.parse.documents import DOCUMENT, ROOT, unwrapped, with_documents

# No size limit: bronze has changes that are too long for silver too.
MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class IncompleteTransaction:
    """A transaction with changes that bronze lacks, in one table.

    Attributes:
        number: the database's transaction id.
        changes: number of its changes.
        held: number of them that bronze has.
    """

    number: str
    changes: int
    held: int

    def __str__(self) -> str:
        return f"{self.number} ({self.held} of {self.changes})"


def incomplete_transactions(
    bronze: DataFrame, changes: Mapping[str, int], *, since: int
) -> list[IncompleteTransaction]:
    """The transactions with changes that bronze lacks, in the order of their numbers.

    Args:
        bronze: records of one table, with bronze's columns.
        changes: number of changes to that table, by transaction id.
        since: time of the first of them, in milliseconds since 1970.
    """
    if not changes:
        return []
    spark = bronze.sparkSession
    expected = spark.createDataFrame(list(changes.items()), "number string, changes bigint")
    # Records arrive after their commit; one day allows for different clocks.
    first = sf.date_sub(sf.to_date(sf.timestamp_millis(sf.lit(since))), 1)
    recent = bronze.where(sf.col(BronzeColumn.ARRIVAL_DATE) >= first)
    change = unwrapped(DOCUMENT)
    numbers = with_documents(recent, max_bytes=MOST_BYTES).select(
        sf.split(text_at(change, f"{ROOT}.transaction.id"), ":")[0].alias("number"),
        text_at(change, f"{ROOT}.transaction.total_order").alias("place"),
    )
    held = numbers.groupBy("number").agg(sf.countDistinct("place").alias("held"))
    missing = (
        expected.join(held, "number", "left")
        .withColumn("held", sf.coalesce("held", sf.lit(0)))
        .where("held < changes")
        .orderBy(sf.col("number").cast("bigint"))
    )
    return [IncompleteTransaction(*row) for row in missing.collect()]

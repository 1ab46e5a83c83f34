"""Whether bronze has every change of each transaction, by the numbers that the changes carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.names import BronzeColumn
from spark_jobs.silver.parse.casting import text_at
from spark_jobs.silver.parse.documents import DOCUMENT, unwrapped, with_documents

# A change that is too long for silver is there all the same.
MOST_BYTES = 2**31 - 1


@dataclass(frozen=True)
class IncompleteTransaction:
    """A transaction of which bronze lacks changes of one table.

    Attributes:
        number: the database's own.
        changes: how many it made.
        held: how many of them bronze has.
    """

    number: str
    changes: int
    held: int

    def __str__(self) -> str:
        return f"{self.number} ({self.held} of {self.changes})"


def incomplete_transactions(
    bronze: DataFrame, changes: Mapping[str, int], *, since: int
) -> list[IncompleteTransaction]:
    """The transactions of which bronze lacks changes.

    Args:
        bronze: the records of one table.
        changes: how many changes each transaction made to that table.
        since: when the first of them was, in milliseconds since 1970.
    """
    if not changes:
        return []
    spark = bronze.sparkSession
    told = spark.createDataFrame(list(changes.items()), "number string, changes bigint")
    # Records arrive after they were committed, however much two clocks differ.
    first = sf.date_sub(sf.to_date(sf.timestamp_millis(sf.lit(since))), 1)
    recent = bronze.where(sf.col(BronzeColumn.ARRIVAL_DATE) >= first)
    change = unwrapped(DOCUMENT)
    numbers = with_documents(recent, max_bytes=MOST_BYTES).select(
        sf.split(text_at(change, "$.transaction.id"), ":")[0].alias("number"),
        text_at(change, "$.transaction.total_order").alias("place"),
    )
    held = numbers.groupBy("number").agg(sf.countDistinct("place").alias("held"))
    missing = (
        told.join(held, "number", "left")
        .withColumn("held", sf.coalesce("held", sf.lit(0)))
        .where("held < changes")
        .orderBy(sf.col("number").cast("bigint"))
    )
    return [IncompleteTransaction(*row) for row in missing.collect()]

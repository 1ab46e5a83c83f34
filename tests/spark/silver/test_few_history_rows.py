"""A small batch of a history is written without Spark as Spark writes it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.storage.policy import Limit
from tests.spark.silver.both_ways import apply_both_ways, feed, started, written
from tests.spark.silver.world import CHANGES, HISTORY, Record, bronze, change, columns

MOST, KEYS = 12, 5
# Delta's log has times in milliseconds, rounded down; these differ by less.
MICROSECOND = 1e-6
BY_TEXT = CHANGES.model_copy(
    update={"columns": columns(order_id="string", status="string", amount="decimal(12,2)")}
)
HISTORY_BY_TEXT = HISTORY.model_copy(
    update={"columns": (*BY_TEXT.columns, *HISTORY.columns[len(BY_TEXT.columns) :])}
)


def batches(count: int) -> list[list[Record]]:
    """Changes within a millisecond, some late, some at the same time, one truncation."""
    random, found = Random(count), []
    for number in range(count):
        first = 100 * (number + 1)
        records = []
        for _ in range(random.randrange(3, MOST)):
            late = random.random() < 0.3
            position = random.randrange(1, first) if late else first + random.randrange(90)
            records.append(
                change(
                    random.choice("cuud"),
                    random.randrange(KEYS),
                    position,
                    commit=position - 1,
                    status=random.choice("xyz"),
                    at=1_700_000_000 + random.randrange(1, 900) * MICROSECOND,
                )
            )
        found.append(records)
    found[count // 2].append(change("t", 0, 250, commit=249))
    return found


@pytest.mark.parametrize(
    ("source", "entry", "count"),
    [(CHANGES, HISTORY, 2), pytest.param(BY_TEXT, HISTORY_BY_TEXT, 5, marks=pytest.mark.long)],
    ids=["by number", "by text"],
)
def test_few_rows_are_written_as_spark_writes_them(
    spark: SparkSession, tmp_path: Path, source: SourceEntry, entry: SilverEntry, count: int
) -> None:
    """The same rows, the same change feeds, the same counts; each batch is applied twice."""
    here, here_record = started(spark, tmp_path / "here", source, entry)
    there, there_record = started(spark, tmp_path / "there", source, entry)
    apply_both_ways(spark, here, there, batches(count))
    assert here_record == there_record
    assert feed(spark, here.tables.table) == feed(spark, there.tables.table)
    for one in (here.tables.table, here.tables.changes):
        assert {commit["engineInfo"].partition(":")[0] for commit in written(one)} == {"delta-rs"}


def test_long_rows_that_a_small_batch_ends_are_written_by_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    long, _ = started(spark, tmp_path, CHANGES, HISTORY)
    orders = replace(long, few=Limit(rows=100, bytes=500))
    for number, status in enumerate(["x" * 800, "y", "z"]):
        record = change("u", 1, 100 * (number + 1), commit=100 * number, status=status)
        orders.apply(bronze(spark, [record], first=number), number)
    writers = [commit["engineInfo"].partition(":")[0] for commit in written(orders.tables.table)]
    assert ["Spark" in writer for writer in reversed(writers)] == [True, True, False]

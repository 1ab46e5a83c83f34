"""Delta tables and their logs, as Spark writes them and delta-rs reads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.storage import log, tables
from spark_jobs.storage.cleaning import remove_files
from spark_jobs.storage.delta import CHANGE_FEED, Txn
from spark_jobs.storage.errors import LogUnreadableError, TableMissingError
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log_files import past_entries
from spark_jobs.storage.streams import create_stream_table


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    description: str | None = None


COLUMNS = (
    Column("id", "BIGINT", "The row's id."),
    Column("odd_näme", "decimal(12, 2)"),
    Column("tags", "array<struct<a:int,b:timestamp>>"),
)


@pytest.mark.parametrize("folder", ["plain", "with space", "ünï'code"])
def test_a_created_table_is_read_back_with_its_types(
    spark: SparkSession, tmp_path: Path, folder: str
) -> None:
    location = f"{tmp_path}/{folder}/t"
    for _ in range(2):
        create_stream_table(spark, location, COLUMNS, change_feed=True)
    assert log.table_version(location).version == 0
    assert [(c.name, c.type, c.description) for c in log.schema(location)] == [
        ("id", "bigint", "The row's id."),
        ("odd_näme", "decimal(12,2)", None),
        ("tags", "array<struct<a:int,b:timestamp>>", None),
    ]
    assert tables.read(spark, location).count() == 0


def test_a_repeated_transaction_commits_once(spark: SparkSession, tmp_path: Path) -> None:
    location = f"{tmp_path}/t"
    frame = spark.range(3)
    for _ in range(2):
        tables.overwrite(
            frame, location, txn=Txn("app", 1), metadata={"a": 1}, properties=CHANGE_FEED
        )
    tables.append(frame, location, txn=Txn("app", 2), metadata={"a": 2})
    tables.append(frame, location, txn=Txn("app", 1))
    assert [(c.version, c.metadata) for c in log.commits(location)] == [
        (1, {"a": 2}),
        (0, {"a": 1}),
    ]
    assert log.transaction_version(location, "app") == 2
    assert log.transaction_version(location, "other") is None
    assert log.size(location).rows == 6
    assert log.size(location, 0).rows == 3
    assert tables.read(spark, location, 0).count() == 3


def test_a_file_url_is_the_path_it_stands_for(spark: SparkSession, tmp_path: Path) -> None:
    tables.append(spark.range(1), f"{tmp_path}/a b/t")
    assert Lake(f"file://{tmp_path}/a%20b").root == f"{tmp_path}/a b"
    assert log.table_version(f"file://{tmp_path}/a%20b/t").version == 0


def test_the_log_of_a_table_with_features_that_only_spark_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    location = f"{tmp_path}/t"
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    tables.append(spark.range(100).coalesce(1), location, properties=properties)
    spark.sql(f"DELETE FROM delta.`{location}` WHERE id = 7")
    assert log.table_version(location).version == 1
    assert len(log.commits(location)) == 2
    assert [column.name for column in log.schema(location)] == ["id"]


def test_a_missing_table_has_no_version(tmp_path: Path) -> None:
    location = f"{tmp_path}/nothing"
    assert log.table_version(location) is None
    assert log.commits(location) == []
    assert log.transaction_version(location, "app") is None
    with pytest.raises(TableMissingError):
        log.schema(location)
    assert not Path(location).exists()


def test_a_torn_log_is_named(tmp_path: Path) -> None:
    entries = tmp_path / "t" / "_delta_log"
    entries.mkdir(parents=True)
    (entries / f"{0:020}.json").write_text('{"torn')
    with pytest.raises(LogUnreadableError):
        log.table_version(f"{tmp_path}/t")


def test_spark_goes_on_after_entries_of_the_log_were_deleted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Sessions that have the table open or not, and a stream that has read some of it."""
    location, copy = f"{tmp_path}/t", f"{tmp_path}/copy"
    spark.sql(
        f"CREATE TABLE delta.`{location}` (id BIGINT) USING delta TBLPROPERTIES "
        "(delta.enableChangeDataFeed = true, delta.checkpointInterval = 5)"
    )

    def append(first: int, last: int) -> None:
        for number in range(first, last + 1):
            spark.range(number, number + 1).write.format("delta").mode("append").save(location)

    def ids(rows: DataFrame) -> list[int]:
        return sorted(row.id for row in rows.collect())

    def follow() -> list[int]:
        changes = spark.readStream.format("delta").load(location).writeStream.format("delta")
        placed = changes.option("checkpointLocation", f"{tmp_path}/checkpoint")
        placed.trigger(availableNow=True).start(copy).awaitTermination()
        return ids(spark.read.format("delta").load(copy))

    append(1, 7)
    assert follow() == list(range(1, 8))
    append(8, 12)
    past = past_entries(location, before=7)
    assert {int(one.rpartition("/")[2].lstrip(".")[:20]) for one in past} == set(range(5))
    remove_files(location, past)
    append(13, 13)
    for session in (spark, spark.newSession()):
        assert ids(session.sql(f"SELECT id FROM delta.`{location}`")) == list(range(1, 14))
        old = session.sql(f"SELECT id FROM delta.`{location}` VERSION AS OF 7")
        assert ids(old) == list(range(1, 8))
        feed = session.read.option("readChangeFeed", "true").option("startingVersion", 8)
        assert ids(feed.format("delta").load(location)) == list(range(8, 14))
    assert follow() == list(range(1, 14))
    assert [one.version for one in log.commits(location)] == list(range(13, 4, -1))

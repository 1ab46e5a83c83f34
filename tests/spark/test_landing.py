"""Batches of Kafka records come into bronze once, whoever writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.bronze import landing
from spark_jobs.bronze.landing import Landing
from spark_jobs.bronze.table import COLUMNS, arrived, received
from spark_jobs.names import BronzeColumn
from spark_jobs.sections import Engine, MaintenanceSettings
from spark_jobs.storage import log, policy, tables
from spark_jobs.storage.checkpoints import write_text
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.streams import create_stream_table

BEGIN = datetime(2026, 1, 2, 23, 59, 58, tzinfo=UTC)
QUERY = "9b1deb4d"
SPARK, DELTA_RS = "Apache-Spark", "delta-rs"


class CrashError(Exception):
    """Simulates a kill."""


class World:
    """A bronze table, and a checkpoint with the planned batches."""

    def __init__(self, spark: SparkSession, folder: Path, maintenance: MaintenanceSettings) -> None:
        self.spark = spark
        self.landing = Landing(
            str(folder / "bronze"),
            str(folder / "of"),
            tasks=2,
            few=policy.BATCH,
            maintenance=maintenance,
        )
        create_stream_table(
            spark, self.landing.table, COLUMNS, partition_by=(BronzeColumn.ARRIVAL_DATE,)
        )
        write_text(f"{self.landing.checkpoint}/metadata", f'{{"id":"{QUERY}"}}')

    def at_most(self, few: Limit) -> None:
        """From now on only such batches are appended without Spark."""
        self.landing = replace(self.landing, few=few)

    def plan(self, batch_id: int, *, end: int) -> datetime:
        """As Spark writes it before the batch; planned a second after the one before."""
        at = BEGIN + timedelta(seconds=batch_id)
        told = f'{{"batchTimestampMs":{int(at.timestamp() * 1000)}}}'
        place = f"{self.landing.checkpoint}/offsets/{batch_id}"
        write_text(place, f'v1\n{told}\n{{"t":{{"0":{end}}}}}')
        return at

    def records(self, offsets: Sequence[int], *, parts: int = 1, size: int = 3) -> DataFrame:
        """Records of these offsets as ``received`` gives them; every other one has headers."""
        rows = self.spark.range(min(offsets, default=0), max(offsets, default=-1) + 1, 1, parts)
        return rows.selectExpr(
            "IF(id = 1, NULL, encode(string(id), 'utf-8')) AS key",
            f"encode(repeat('x', {size}), 'utf-8') AS value",
            "IF(id % 2 = 0, array(struct('h' AS key, encode('v', 'utf-8') AS value)), NULL) "
            "AS headers",
            "'t' AS topic",
            "0 AS partition",
            "id AS offset",
            "timestamp_millis(1767323045678 + id) AS timestamp",
        )

    def land(self, batch_id: int, offsets: Sequence[int], *, parts: int = 1, size: int = 3) -> None:
        """Plan a batch of these offsets and land it."""
        self.plan(batch_id, end=max(offsets, default=batch_id) + 1)
        self.landing.land(self.records(offsets, parts=parts, size=size), batch_id)

    def writers(self) -> list[str]:
        """Who made each commit that added rows, the oldest first."""
        known = {"WRITE": None, "OPTIMIZE": None}
        table = log.existing_table(self.landing.table)
        found = []
        for entry in reversed(list(table.history())):
            if entry["operation"] in known and entry["version"]:
                engine = str(entry.get("engineInfo", entry.get("clientVersion", "")))
                writer = SPARK if engine.startswith(SPARK) else DELTA_RS
                found.append(f"{entry['operation']} {writer}")
        return found

    @property
    def held(self) -> DataFrame:
        return tables.read(self.spark, self.landing.table)

    @property
    def offsets(self) -> list[int]:
        return sorted(row[0] for row in self.held.select(BronzeColumn.OFFSET).collect())


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> World:
    return World(spark, tmp_path, MaintenanceSettings())


def test_a_few_records_are_moved_without_sparks_writer(world: World) -> None:
    world.land(0, range(4))
    assert world.writers() == [f"WRITE {DELTA_RS}"]
    expected = arrived(world.records(range(4)), BEGIN)
    names = [str(column.name) for column in COLUMNS]
    held = world.held.select(names)
    assert held.exceptAll(expected.select(names)).isEmpty()
    assert expected.select(names).exceptAll(held).isEmpty()
    world.land(2, range(4, 6))
    days = {
        row[0].isoformat(): row[1] for row in world.held.groupBy("arrival_date").count().collect()
    }
    assert days == {"2026-01-02": 4, "2026-01-03": 2}


def test_many_records_are_written_by_several_tasks(world: World) -> None:
    world.at_most(Limit(rows=9))
    world.land(0, range(10), parts=4)
    assert world.writers()[0] == f"WRITE {SPARK}"
    # Delta may join them after the commit.
    written = [one.metrics for one in log.commits(world.landing.table) if one.operation == "WRITE"]
    assert [one["numFiles"] for one in written] == ["2"]
    rows = world.held.select(BronzeColumn.ARRIVED_AT, BronzeColumn.ARRIVAL_DATE).distinct()
    [(at, day)] = rows.selectExpr("string(arrived_at)", "string(arrival_date)").collect()
    assert (at, day) == ("2026-01-02 23:59:58", "2026-01-02")
    # Of a topic whose first records have gone: the offsets span more than there is.
    world.land(1, range(10, 19))
    assert world.writers()[-1] == f"WRITE {DELTA_RS}"


def test_long_records_are_written_by_sparks_tasks(world: World) -> None:
    # Without the header's two bytes of every other record they would fit.
    world.at_most(Limit(bytes=4 * 100 + 3 + 3))
    world.land(0, range(4), size=100)
    assert world.writers() == [f"WRITE {SPARK}"]
    assert world.offsets == [0, 1, 2, 3]


def test_the_setting_leaves_every_batch_to_spark(world: World) -> None:
    world.at_most(policy.batch_limit(Engine.SPARK))
    for batch in range(3):
        world.land(batch, range(batch, batch + 1))
    assert world.writers() == 3 * [f"WRITE {SPARK}"]
    assert world.offsets == [0, 1, 2]


@pytest.mark.parametrize("first", [9, 0])
@pytest.mark.parametrize("again", [9, 0])
def test_a_batch_that_runs_again_changes_nothing(world: World, first: int, again: int) -> None:
    """Whoever wrote it, and whoever would now."""
    world.at_most(Limit(rows=first))
    world.land(7, range(3))
    version = log.table_version(world.landing.table)
    world.at_most(Limit(rows=again))
    world.land(7, range(3))
    assert world.offsets == [0, 1, 2]
    assert log.table_version(world.landing.table) == version
    world.land(8, range(3, 5))
    assert world.offsets == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("most", [9, 0], ids=["few", "many"])
def test_a_batch_killed_after_its_append_is_not_appended_again(
    world: World, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    world.at_most(Limit(rows=most))

    def crash(name: str) -> None:
        if name == "bronze.after_append":
            raise CrashError(name)

    with monkeypatch.context() as patch:
        patch.setattr(landing, "failpoint", crash)
        with pytest.raises(CrashError):
            world.land(0, range(3))
    version = log.table_version(world.landing.table)
    world.land(0, range(3))
    assert log.table_version(world.landing.table) == version
    assert world.offsets == [0, 1, 2]


def test_a_batch_that_sparks_sink_committed_is_known(world: World) -> None:
    """Which an earlier release used, under the query's id."""
    rows = arrived(world.records(range(3)), BEGIN)
    tables.append(rows, world.landing.table, txn=Txn(QUERY, 4))
    world.land(4, range(3))
    assert world.offsets == [0, 1, 2]
    world.land(5, range(3, 4))
    assert world.offsets == [0, 1, 2, 3]


def test_a_batch_without_records_commits_nothing(world: World) -> None:
    version = log.table_version(world.landing.table)
    world.land(0, ())
    assert log.table_version(world.landing.table) == version


@pytest.mark.parametrize(("engine", "by"), [(Engine.AUTO, DELTA_RS), (Engine.SPARK, SPARK)])
def test_small_files_of_the_day_are_joined_by_who_wrote_them(
    world: World, engine: Engine, by: str
) -> None:
    world.at_most(policy.batch_limit(engine))
    world.landing = replace(world.landing, maintenance=MaintenanceSettings(small_files=3))
    for batch in range(4):
        world.land(batch, range(batch, batch + 1))
    # Two seconds before midnight, two after: of neither day there are three.
    assert "OPTIMIZE" not in str(world.writers())
    world.land(4, range(4, 5))
    assert world.writers()[-2:] == [f"WRITE {by}", f"OPTIMIZE {by}"]
    assert log.size(world.landing.table).files == 3
    assert world.offsets == [0, 1, 2, 3, 4]
    assert log.transaction_version(world.landing.table, QUERY) == 4


def test_a_kafka_timestamp_that_no_reader_could_show_is_null(world: World) -> None:
    first, last, microseconds = -62_135_596_800_000, 253_402_300_799_999, 1_767_323_045_678_000
    moments = [first - 1, first, -1, 0, last, last + 1, microseconds, None]
    sent = world.spark.createDataFrame(list(enumerate(moments)), "offset bigint, at bigint")
    rest = [f"CAST(NULL AS {one.type}) AS {one.name}" for one in COLUMNS[:5]]
    kafka = sent.selectExpr(*rest, "offset", "timestamp_millis(at) AS timestamp", "0 AS other")
    found = received(kafka)
    assert found.columns == [str(one.name) for one in COLUMNS[:7]]
    rows = found.orderBy("offset").selectExpr("unix_millis(timestamp)").collect()
    assert [row[0] for row in rows] == [None, first, -1, 0, last, None, None, None]

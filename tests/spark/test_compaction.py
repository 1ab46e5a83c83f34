"""Small files are joined while change feeds, refreshes and readers go on and see nothing of it."""

from __future__ import annotations

import logging

import pytest

from spark_jobs.graph.manifest import Column
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.storage import compaction, log, reader, tables, writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.history import rows_changed
from spark_jobs.storage.rows import Merge, Rows
from spark_jobs.storage.streams import create_stream_table, read_stream, streaming_conf
from spark_jobs.storage.writer import Joining
from tests.spark.gold_project import GoldProject

MAINTENANCE = MaintenanceSettings(small_files=3)
SUMS = "SELECT e.user, SUM(e.amount) AS total FROM silver.events AS e GROUP BY e.user"
ALL = "SELECT e.id, e.amount FROM silver.events AS e"
COLUMNS = (
    Column(name="id", type="bigint"),
    Column(name="user", type="string"),
    Column(name="amount", type="bigint"),
)


@pytest.fixture
def project(gold: GoldProject) -> GoldProject:
    gold.settings = gold.settings.model_copy(update={"maintenance": MAINTENANCE})
    create_stream_table(gold.spark, gold.location("silver.events"), COLUMNS, change_feed=True)
    return gold


def optimized(location: str) -> list[int]:
    """The versions that joined files."""
    return [one.version for one in log.commits(location) if one.operation == "OPTIMIZE"]


def compaction_conf(project: GoldProject) -> dict[str, str]:
    """What the streaming application's session says about compaction."""
    found = {k: value for k, value in streaming_conf(project.settings).items() if "Compact" in k}
    assert len(found) == 1
    return found


def event(project: GoldProject, number: int) -> None:
    rows = project.spark.sql(f"SELECT {number}L AS id, 'u{number % 2}' AS user, 10L AS amount")
    how = Merge(("id",), ("id", "user", "amount"), update="TRUE", insert="TRUE")
    location, joining = project.location("silver.events"), Joining(MAINTENANCE)
    writer.merge(Rows.of(rows), location, how, txn=Txn("events", number), joining=joining)


def test_a_streams_table_is_joined_by_its_writer_and_nobody_sees_rows_change(
    project: GoldProject, tmp_path
) -> None:
    spark, location = project.spark, project.location("silver.events")
    conf = compaction_conf(project)
    followed = str(tmp_path / "followed")

    def follow() -> None:
        stream = read_stream(spark, location).writeStream.format("delta")
        checkpoint = str(tmp_path / "checkpoint")
        stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(
            followed
        ).awaitTermination()

    with tables.session_values(spark, conf):
        event(project, 0)
        follow()
        project.view("sums", SUMS, inputs=("silver.events",), maintained=True)
        project.refresh("sums", "1")
        earlier = tables.read(spark, location, 1)
        for number in range(1, 3):
            event(project, number)
    assert optimized(location) == [4]
    assert log.size(location).files == 1
    assert not rows_changed(location, after=3, upto=4)
    assert tables.changes(spark, location, after=3, upto=4).count() == 0
    assert reader.changes(spark, location, after=3, upto=4).count() == 0
    assert [row.id for row in earlier.collect()] == [0]

    follow()
    assert sorted(row.id for row in tables.read(spark, followed).collect()) == [0, 1, 2]
    assert project.refresh("sums", "2").plan.reason.code == "INPUT_CHANGED_RULE"
    assert project.rows("sums") == [("u0", 20), ("u1", 10)]
    project.execute("OPTIMIZE {}", "silver.events")
    assert project.reason("sums") == "NO_UPSTREAM_CHANGE"


def test_a_merge_that_leaves_few_small_files_joins_nothing(project: GoldProject) -> None:
    """Delta's own compaction would join two files after every merge.

    They are small and become one that is not; then it forgets the table and its count.
    """
    spark, location = project.spark, project.location("silver.events")
    maintenance = MaintenanceSettings(small_files=50, small_file_mib=1)
    how = Merge(("id",), ("id", "user", "amount"), update="TRUE", insert="TRUE")
    # A kibibyte, which does not compress.
    random = "array_join(transform(sequence(1, 16), n -> sha2(string(16 * id + n), 256)), '')"
    # As in a table of an earlier release.
    spark.sql(
        f"ALTER TABLE delta.`{location}` "
        "SET TBLPROPERTIES ('delta.autoOptimize.autoCompact' = 'true')"
    )
    two = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    with tables.session_values(spark, {**compaction_conf(project), **two}):
        for number in range(3):
            rows = spark.range(1_500).selectExpr("id", f"{random} AS user", "0L AS amount")
            joining = Joining(maintenance)
            writer.merge(Rows.of(rows), location, how, txn=Txn("e", number), joining=joining)
    assert 1 < log.size(location).files < 4
    assert optimized(location) == []


def test_a_published_table_is_joined_by_who_publishes(project: GoldProject) -> None:
    location = project.location("gold.all")
    project.view("all", ALL, inputs=("silver.events",), maintained=True)
    event(project, 0)
    project.refresh("all", "0")
    project.view("above", "SELECT a.id FROM gold.all AS a", inputs=("gold.all",), maintained=True)
    first = log.table_version(location)
    assert first is not None
    earlier = tables.read(project.spark, location, first.version)
    for number in range(1, 3):
        event(project, number)
        project.refresh("all", str(number))
        if number == 1:
            project.refresh("above", "1")
    [joined] = optimized(location)
    assert log.size(location).files == 1
    assert not rows_changed(location, after=joined - 1, upto=joined)
    assert reader.changes(project.spark, location, after=joined - 1, upto=joined).count() == 0
    assert [row.id for row in earlier.collect()] == [0]

    project.refresh("above", "2")
    assert project.rows("above") == [(0,), (1,), (2,)]
    assert project.reason("all") == project.reason("above") == "NO_UPSTREAM_CHANGE"
    event(project, 3)
    project.refresh("all", "3")
    project.assert_right("all")
    assert len(project.publications("all")) == 4


@pytest.mark.parametrize("without_spark", [True, False])
def test_both_compactions_keep_the_rows(
    project: GoldProject, monkeypatch: pytest.MonkeyPatch, without_spark: bool
) -> None:
    location = project.location("gold.t")
    for number in range(3):
        project.append("gold.t", f"SELECT {number} AS n, TIMESTAMP '2024-05-01 10:00:00' AS at")
    if not without_spark:
        monkeypatch.setattr(compaction.plain, "open_for_rewriting", lambda _: None)
    assert compaction.join_small_files(location, MAINTENANCE, spark=lambda: project.spark) == 1
    assert not rows_changed(location, after=2, upto=3)
    rows = tables.read(project.spark, location).selectExpr("n", "date_format(at, 'HH') AS h")
    assert sorted(tuple(row) for row in rows.collect()) == [(n, "10") for n in range(3)]
    assert compaction.join_small_files(location, MAINTENANCE, spark=lambda: project.spark) is None


def test_an_error_is_logged_and_raises_nothing(
    project: GoldProject, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    location = project.location("gold.t")
    for number in range(3):
        project.append("gold.t", f"SELECT {number} AS n")

    def fail(_: str) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(compaction.plain, "open_for_rewriting", fail)
    with caplog.at_level(logging.WARNING):
        assert (
            compaction.join_small_files(location, MAINTENANCE, spark=lambda: project.spark) is None
        )
    assert "no space left on device" in caplog.text
    assert log.size(location).files == 3

"""What `tidemark maintain` removes, and what it keeps for whom."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.serving.cleanup import clustering
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.progress import StreamProgress, sink_query
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage import float_bounds
from spark_jobs.storage.checkpoints import write_text
from spark_jobs.storage.errors import TableUnknownError
from spark_jobs.storage.history import readable
from spark_jobs.storage.log import table_version
from tests.golden.declaration_cases import RIGHT, write_project
from tests.unit.storage.aging import age

ORDERS = TableName.parse("silver.orders")
SINK = 'sinks:\n  - redis: {prefix: "spend:"}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    text = RIGHT["sql/gold/spend.sql"].replace("every:", f"{SINK}every:")
    return write_project(tmp_path / "project", {"sql/gold/spend.sql": text})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "state/lake"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    (tmp_path / "state").mkdir()
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as opened:
        yield opened


def maintain(project: Path, *words: str) -> dict[str, Any]:
    call = ["--project", str(project), "maintain", *words, "--json"]
    done = CliRunner().invoke(app, call, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def table(place: Path, *, days: float) -> TableVersion:
    """A table that became older and older: versions 0 to 3, each replaced the one before."""
    for value in range(4):
        write_deltalake(place, pa.table({"user_id": [value]}), mode="overwrite")
        age(str(place), days)
    return TableVersion(str(DeltaTable(place).metadata().id), 3)


def row(done: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [one for one in done["tables"] if one["table"] == name]
    return found


def publish(place: Path, orders: TableVersion) -> None:
    mark = Watermark(
        view="spend",
        sequence=1,
        epoch=1,
        fingerprint="",
        rule="full",
        vector=VersionVector({ORDERS: orders}),
        tick="t",
        attempt="a",
        clock=utc_now(),
    )
    said = CommitProperties(custom_metadata={"userMetadata": json.dumps(mark.as_metadata())})
    write_deltalake(place, pa.table({"user_id": [1]}), mode="overwrite", commit_properties=said)


def test_unneeded_versions_are_removed_but_not_by_a_dry_run(
    project: Path, lake: Path, store: ControlStore
) -> None:
    at = lake / "silver/orders"
    table(at, days=8)
    table(lake / "_tombstones/orders", days=8)
    dry = maintain(project, "--dry-run")
    assert dry["dry_run"]
    assert readable(str(at), 0)
    done = maintain(project)
    assert done["tables"] == dry["tables"]
    for name in ("silver.orders", "_tombstones/orders"):
        one = row(done, name)
        assert (one["files"], one["removed"], one["why"]) == (4, 3, "")
        assert one["bytes"] > 0
    assert not readable(str(at), 2)
    assert readable(str(at), 3)
    assert DeltaTable(at).version() == 3
    assert row(maintain(project), "silver.orders")["removed"] == 0


def test_versions_within_the_retention_stay(project: Path, lake: Path, store: ControlStore) -> None:
    table(lake / "silver/orders", days=2)
    assert row(maintain(project), "silver.orders")["removed"] == 0


def test_input_versions_of_a_published_view_stay(
    project: Path, lake: Path, store: ControlStore
) -> None:
    at = lake / "silver/orders"
    newest = table(at, days=8)
    publish(lake / "gold/spend", TableVersion(newest.table_id, 2))
    one = row(maintain(project), "silver.orders")
    assert (one["removed"], one["why"]) == (1, "gold.spend needs version 2")
    assert readable(str(at), 2)
    publish(lake / "gold/spend", TableVersion("another table", 2))
    assert row(maintain(project), "silver.orders")["removed"] == 2


def test_versions_pinned_by_an_attempt_or_a_tick_stay(
    project: Path, lake: Path, store: ControlStore
) -> None:
    orders = table(lake / "silver/orders", days=8)
    vector = VersionVector({ORDERS: TableVersion(orders.table_id, 0)})
    now = utc_now()
    attempt = RefreshAttempt(
        attempt_id="a",
        view="spend",
        tick="t",
        status=AttemptStatus.BLOCKED,
        epoch=1,
        vector=vector.as_dict(),
        started_at=now,
        updated_at=now,
    )
    store.create_attempt(attempt)
    one = row(maintain(project), "silver.orders")
    assert (one["removed"], one["why"]) == (0, "attempt a needs version 0")
    store.update_attempt("a", status=AttemptStatus.FAILED)
    store.pin_version("t", ORDERS, TableVersion(orders.table_id, 2))
    one = row(maintain(project), "silver.orders")
    assert (one["removed"], one["why"]) == (1, "a pinned tick needs version 2")


def test_versions_that_a_sink_has_not_delivered_stay(
    project: Path, lake: Path, store: ControlStore
) -> None:
    table(lake / "gold/spend", days=8)
    now = utc_now()
    report = StreamProgress(
        query=sink_query("spend_redis"), batch_id=2, records=1, at=now, heartbeat_at=now
    )
    store.record_progress(report)
    one = row(maintain(project), "gold.spend")
    assert (one["removed"], one["why"]) == (1, "sink spend_redis needs version 2")


def test_versions_that_a_stream_has_not_read_stay(
    project: Path, lake: Path, store: ControlStore
) -> None:
    bronze = table(lake / "bronze/orders", days=8)
    offsets = {"reservoirId": bronze.table_id, "reservoirVersion": 3, "index": -1}
    checkpoint = f"{lake}/_checkpoints/silver.orders/1"
    write_text(f"{checkpoint}/offsets/0", f"v1\n{{}}\n{json.dumps(offsets)}")
    write_text(f"{checkpoint}/commits/0", "v1\n{}")
    one = row(maintain(project), "bronze.orders")
    assert (one["removed"], one["why"]) == (1, "the stream of silver.orders needs version 2")


def test_a_needed_version_without_a_log_entry_keeps_all_files(
    project: Path, lake: Path, store: ControlStore
) -> None:
    at = lake / "silver/orders"
    newest = table(at, days=8)
    publish(lake / "gold/spend", TableVersion(newest.table_id, 2))
    DeltaTable(at).create_checkpoint()
    for version in (0, 1, 2):
        (at / "_delta_log" / f"{version:020}.json").unlink()
    one = row(maintain(project), "silver.orders")
    assert one["removed"] == 0
    assert one["why"] == "gold.spend needs version 2, which has no log any more"


def test_staged_results_expire(project: Path, lake: Path, store: ControlStore) -> None:
    for attempt, days in (("old", 8), ("young", 1)):
        table(lake / "_staging/spend" / attempt, days=days)
    assert maintain(project, "silver.orders")["staged"] == []
    [gone] = maintain(project, "--dry-run")["staged"]
    assert gone["table"] == "_staging/spend/old"
    assert (lake / "_staging/spend/old").exists()
    assert maintain(project)["staged"] == [gone]
    assert [one.name for one in (lake / "_staging/spend").iterdir()] == ["young"]


def test_files_of_a_refresh_that_never_committed_expire(
    project: Path, lake: Path, store: ControlStore
) -> None:
    for attempt, days in (("old", 8), ("young", 1)):
        place = lake / "_staging/spend" / attempt
        place.mkdir(parents=True)
        (place / "part-0.parquet").write_bytes(b"1234")
        age(str(place), days)
    (lake / "_staging/spend/begun").mkdir()
    [gone] = maintain(project)["staged"]
    assert (gone["table"], gone["files"], gone["bytes"]) == ("_staging/spend/old", 1, 4)
    left = sorted(one.name for one in (lake / "_staging/spend").iterdir())
    assert left == ["begun", "young"]


def test_a_table_is_named_as_sql_names_it(project: Path, store: ControlStore) -> None:
    with pytest.raises(TableUnknownError) as caught:
        maintain(project, "silver.order")
    assert caught.value.hint == 'Did you mean "silver.orders"?'


def test_the_table_for_people(project: Path, lake: Path, store: ControlStore) -> None:
    newest = table(lake / "silver/orders", days=8)
    publish(lake / "gold/spend", TableVersion(newest.table_id, 2))
    old = utc_now() - timedelta(days=100)
    assert store.trim(before=old).total == 0
    words = ["--project", str(project), "maintain", "--dry-run"]
    shown = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    for part in ("nothing was removed", "silver.orders", "gold.spend needs version 2"):
        assert part in shown
    assert "0 silver batches and 0 incidents would leave" in shown


def test_a_dry_run_lists_expired_rows(project: Path, lake: Path, store: ControlStore) -> None:
    header = RIGHT["sql/silver/clicks.sql"].replace("*/", "ttl: 90 days\n*/")
    write_project(project, {"sql/silver/clicks.sql": header})
    today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
    oldest = today - timedelta(days=90)
    times = [oldest - timedelta(seconds=1), oldest, today, None]
    times = pa.array(times, pa.timestamp("us", "UTC"))
    write_deltalake(lake / "silver/clicks", pa.table({"at": times}))
    done = maintain(project, "--dry-run")

    assert [(one["table"], one["rows"], one["version"]) for one in done["expired"]] == [
        ("silver.clicks", 1, None)
    ]
    assert done["expired"][0]["before"].startswith(f"{oldest:%Y-%m-%d} 00:00:00")
    assert maintain(project, "--dry-run", "silver.orders")["expired"] == []


def streamed(place: Path, commits: int, *, checkpoint_every: int) -> TableVersion:
    """A table of so many commits, with checkpoints of the log; nothing of it is old."""
    rows = pa.table({"user_id": [1]})
    write_deltalake(place, rows, configuration={"delta.checkpointInterval": "1000000"})
    table = DeltaTable(place)
    for number in range(1, commits):
        write_deltalake(table, rows, mode="append")
        # Spark adds checksums to its commits, and Hadoop to every file.
        for name in (f"{number:020}.crc", f".{number:020}.json.crc", f".{number:020}.crc.crc"):
            (place / "_delta_log" / name).touch()
        if number % checkpoint_every == 0:
            table.create_checkpoint()
    return TableVersion(str(table.metadata().id), commits - 1)


def entries(place: Path) -> list[str]:
    return sorted(one.name for one in (place / "_delta_log").iterdir())


def test_of_many_commits_the_newest_stay_readable_from_a_checkpoint(
    project: Path, lake: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_MAINTENANCE__LOG_COMMITS", "100")
    at = lake / "silver/orders"
    streamed(at, 131, checkpoint_every=10)
    streamed(lake / "silver/users", 20, checkpoint_every=10)
    before = entries(at)
    dry = maintain(project, "--logs", "--dry-run")
    assert entries(at) == before
    done = maintain(project, "--logs")
    assert done["tables"] == dry["tables"]
    # Version 30 is the oldest of the newest hundred, and has a checkpoint. Of the later ones the
    # newest three stay.
    assert [one["table"] for one in done["tables"]] == ["silver.orders"]
    freed = len(before) - len(entries(at))
    assert row(done, "silver.orders")["entries"] == freed == 1 + 4 * 29 + 2 + 7
    kept = entries(at)
    assert f"{30:020}.checkpoint.parquet" in kept
    assert all(name == "_last_checkpoint" or int(name.lstrip(".")[:20]) >= 30 for name in kept)
    for version in (30, 57, 130):
        assert DeltaTable(at, version=version).version() == version
    assert DeltaTable(at).to_pyarrow_table().num_rows == 131
    assert table_version(str(at)) == TableVersion(str(DeltaTable(at).metadata().id), 130)
    assert maintain(project, "--logs")["tables"] == []


def test_commits_that_a_reader_needs_stay_however_many_there_are(
    project: Path, lake: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_MAINTENANCE__LOG_COMMITS", "100")
    at = lake / "silver/orders"
    made = streamed(at, 131, checkpoint_every=10)
    publish(lake / "gold/spend", TableVersion(made.table_id, 17))
    assert row(maintain(project, "--logs"), "silver.orders")["why"] == (
        "gold.spend needs version 17"
    )
    assert f"{16:020}.json" in entries(at)
    assert f"{9:020}.json" not in entries(at)
    changes = DeltaTable(at, version=17)
    assert changes.version() == 17


def test_a_version_that_the_log_has_lost_keeps_nothing(
    project: Path, lake: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_MAINTENANCE__LOG_COMMITS", "10")
    at = lake / "silver/orders"
    made = streamed(at, 31, checkpoint_every=10)
    maintain(project, "--logs")
    assert f"{17:020}.json" not in entries(at)
    # As after a rollback to a publication of that time.
    publish(lake / "gold/spend", TableVersion(made.table_id, 17))
    for _ in range(11):
        write_deltalake(at, pa.table({"user_id": [1]}), mode="append")
    one = row(maintain(project), "silver.orders")
    assert (one["why"], one["entries"] >= 40) == ("", True)
    assert f"{29:020}.json" not in entries(at)
    assert DeltaTable(at).to_pyarrow_table().num_rows == 31 + 11


def test_a_gap_in_the_log_keeps_all_files(project: Path, lake: Path, store: ControlStore) -> None:
    at = lake / "silver/orders"
    newest = table(at, days=8)
    publish(lake / "gold/spend", TableVersion(newest.table_id, 1))
    DeltaTable(at).create_checkpoint()
    for version in (1, 2):
        (at / "_delta_log" / f"{version:020}.json").unlink()
    one = row(maintain(project), "silver.orders")
    assert one["why"] == "gold.spend needs version 1, which has no log any more"
    (at / "_delta_log" / f"{0:020}.json").unlink()
    assert row(maintain(project), "silver.orders")["why"] == ""


def test_commits_older_than_the_retention_leave_the_log(
    project: Path, lake: Path, store: ControlStore
) -> None:
    at = lake / "silver/orders"
    streamed(at, 12, checkpoint_every=10)
    age(str(at), 8)
    write_deltalake(at, pa.table({"user_id": [2]}), mode="append")
    maintain(project)
    assert [name for name in entries(at) if name.endswith(".json")] == [
        f"{version:020}.json" for version in (10, 11, 12)
    ]
    assert DeltaTable(at).to_pyarrow_table().num_rows == 13


def test_the_newest_publication_stays_in_the_log_of_a_view(
    project: Path, lake: Path, store: ControlStore
) -> None:
    """It holds the versions of the inputs, without which the view counts as never published."""
    at = lake / "gold/spend"
    orders = table(lake / "silver/orders", days=0)
    for number in range(4):
        write_deltalake(at, pa.table({"user_id": [number]}), mode="append")
    publish(at, orders)
    # As after a compaction.
    DeltaTable(at).alter.set_table_properties({"delta.checkpointInterval": "1000000"})
    DeltaTable(at).create_checkpoint()
    age(str(at), 8)
    assert row(maintain(project), "gold.spend")["entries"] == 0
    assert f"{4:020}.json" in entries(at)
    publish(at, orders)
    DeltaTable(at).create_checkpoint()
    age(str(at), 8)
    assert row(maintain(project), "gold.spend")["entries"] > 0
    assert [name for name in entries(at) if name.endswith(".json")] == [f"{6:020}.json"]
    found = latest_publication(str(at))
    assert found is not None
    assert found.watermark.vector.versions[ORDERS] == orders


def test_a_table_that_cannot_be_rewritten_keeps_nobody_from_cleaning(
    project: Path, lake: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    del store
    asked: list[object] = []

    def no_session(*arguments: object) -> None:
        asked.append(arguments)
        raise OSError("no space left")

    monkeypatch.setattr(clustering, "_session", no_session)
    table(lake / "gold/spend", days=60)
    write_deltalake(lake / "silver/orders", pa.table({"user_id": [1.0, float("nan")]}))
    done = maintain(project)
    assert (len(asked), done["corrected"]) == (1, [])
    assert row(done, "gold.spend")["removed"] > 0


def test_the_footers_of_a_table_are_read_once(
    project: Path, lake: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    del store
    read: list[str] = []
    monkeypatch.setattr(float_bounds, "lack_nan", lambda location: read.append(location) or False)
    table(lake / "gold/spend", days=60)
    for _ in range(2):
        assert maintain(project)["corrected"] == []
    assert read == [str(lake / "gold/spend")]
    shutil.rmtree(lake / "gold/spend")
    table(lake / "gold/spend", days=60)
    maintain(project)
    assert len(read) == 2

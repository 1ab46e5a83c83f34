"""What turns the watch red: silence, failures and lag, each with its name and its runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_jobs.access.secrets import secret_path
from spark_jobs.cli.main import app
from spark_jobs.gold.telemetry.event_sender import ASSET_UNKNOWN, NO_AIRFLOW
from spark_jobs.gold.telemetry.verdict_events import verdict_cursor
from spark_jobs.names import TableName, TableVersion
from spark_jobs.serving.report.status_check import Trouble, first_to_solve
from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.stack.certificates import (
    AUTHORITY_KEY,
    KAFKA,
    certificate_name,
    ensure_certificate,
    new_authority,
    signed,
)
from spark_jobs.stack.secrets import write_secret
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.drift import Drift, DriftKind
from spark_jobs.state.frontiers import TableAtFrontier
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.stopped import forget_stopped, note_stopped
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from tests.golden.declaration_cases import RIGHT, write_project

EXPECTED = (
    "bronze.clicks",
    "bronze.orders",
    "gold.spend",
    "silver.clicks",
    "silver.orders",
    "sink.spend_redis",
)
SINK = 'sinks:\n  - redis: {prefix: "spend:"}\n'


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    text = RIGHT["sql/gold/spend.sql"].replace("every: 15 minutes\n", SINK)
    text = text.replace("micro-batch", "continuous")
    return write_project(tmp_path / "project", {"sql/gold/spend.sql": text})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    (tmp_path / "state").mkdir()
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as opened:
        yield opened


def check(project: Path, *more: str) -> Any:
    words = ["--project", str(project), "status", "--check", *more]
    return CliRunner().invoke(app, words, catch_exceptions=False)


def report(query: str, **changed: Any) -> StreamProgress:
    now = utc_now()
    first = StreamProgress(query=query, batch_id=3, records=1, at=now, heartbeat_at=now)
    return replace(first, **changed)


def test_a_check_for_programs_is_one_document(project: Path, store: ControlStore) -> None:
    done = check(project, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert not found["passed"]
    (trouble,) = found["troubles"]
    assert trouble["name"] == "streaming application"
    assert trouble["runbook"] == "stream-silent"
    assert sorted(trouble["causes"]) == list(EXPECTED)
    for query in EXPECTED:
        store.record_progress(report(query))
    done = check(project, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {"passed": True, "troubles": []}


def test_a_check_of_one_view_is_refused_and_not_taken_for_one_of_all(project: Path) -> None:
    done = check(project, "spend")
    assert done.exit_code == 2
    assert "leave out the view" in done.stderr


def test_an_application_that_never_reported_is_one_line(project: Path) -> None:
    done = check(project)
    assert done.exit_code == 1
    (line,) = done.stdout.splitlines()
    assert "streaming application: none of its 6 queries ever reported" in line
    assert "docs/runbooks/stream-silent.md" in line


def test_streams_that_never_reported_are_named_beside_those_that_did(
    project: Path, store: ControlStore
) -> None:
    store.record_progress(report(EXPECTED[0]))
    done = check(project)
    assert done.exit_code == 1
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == list(EXPECTED[1:])


def test_where_all_report_there_is_nothing_to_name(project: Path, store: ControlStore) -> None:
    for name in EXPECTED:
        store.record_progress(report(name))
    store.record_progress(report("silver.clicks", state=StreamState.STOPPED))
    store.record_progress(report("sink.spend_redis", state=StreamState.WAITING))
    store.record_progress(report("silver.of_the_past", state=StreamState.FAILED))
    done = check(project)
    assert (done.exit_code, done.stdout) == (0, "Everything that should run reports.\n")


def stopped(store: ControlStore, seen: timedelta) -> None:
    at = utc_now() - seen
    for name in EXPECTED:
        store.record_progress(report(name, state=StreamState.STOPPED, heartbeat_at=at))


def test_an_application_that_stopped_by_itself_is_down(project: Path, store: ControlStore) -> None:
    stopped(store, timedelta(hours=5, minutes=1))
    done = check(project)
    assert done.exit_code == 1
    (line,) = done.stdout.splitlines()
    assert "streaming application: down, none of its 6 queries was seen since 5 h 1 min ago" in line
    store.record_progress(report(EXPECTED[0]))
    lines = check(project).stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == list(EXPECTED[1:])
    assert all("down, should run and stopped 5 h 1 min ago" in line for line in lines)
    stopped(store, timedelta(hours=5, minutes=1))
    shown = CliRunner().invoke(app, ["--project", str(project), "status"], catch_exceptions=False)
    assert shown.stdout.count("down") == len(EXPECTED)


def test_an_application_may_take_a_minute_to_come_back(project: Path, store: ControlStore) -> None:
    stopped(store, timedelta(seconds=20))
    assert check(project).exit_code == 0


def test_what_a_person_stopped_is_not_down(
    project: Path, store: ControlStore, tmp_path: Path
) -> None:
    stopped(store, timedelta(hours=5))
    note_stopped(tmp_path / "state")
    assert check(project).exit_code == 0
    forget_stopped(tmp_path / "state")
    assert check(project).exit_code == 1


def test_changes_that_the_connector_left_out_are_named(project: Path, store: ControlStore) -> None:
    for name in EXPECTED:
        store.record_progress(report(name))
    noted = project.parent / "state/kafka/skipped.log"
    noted.parent.mkdir()
    line = "2026-11-23T05:25:54.519Z Error while processing event at offset {lsn=37573496}"
    noted.write_text(f"{line}\n")
    done = check(project)
    assert (done.exit_code, done.stdout.strip()) == (
        1,
        (
            "connector shop: left out 1 change that it cannot read, the last at 0/23D5378; "
            "see docs/runbooks/connector-failed.md"
        ),
    )
    words = ["--project", str(project), "source", "skipped"]
    assert "0/23D5378" in CliRunner().invoke(app, words, catch_exceptions=False).stdout
    answered = [*words, "--run", "--reason", "the row was written again"]
    told = CliRunner().invoke(app, answered, catch_exceptions=False).stdout
    assert "0/23D5378" in told
    assert told.endswith("Changes that are answered now: 1\n")
    assert check(project).exit_code == 0


def test_a_lost_slot_is_named_although_the_connector_runs(
    project: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in EXPECTED:
        store.record_progress(report(name))
    monkeypatch.setattr("spark_jobs.stack.slot.connector_slot_lost", lambda _: True)
    done = check(project)
    assert done.exit_code == 1
    assert done.stdout.strip() == (
        "connector shop: PostgreSQL has removed log that slot 'tidemark' needed, so changes are "
        "lost; see docs/runbooks/changes-lost.md"
    )


def test_a_log_that_begins_again_at_lower_positions_is_named(
    project: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in EXPECTED:
        store.record_progress(report(name))
    table, version = TableName.parse("silver.orders"), TableVersion("a", 1)
    store.note_frontiers([TableAtFrontier("shop", 0x1_0000_0050, table, version, utc_now())])
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", "postgresql://x@127.0.0.1:1/shop")
    monkeypatch.setattr("spark_jobs.stack.slot.connector_slot_lost", lambda _: False)
    monkeypatch.setattr("spark_jobs.graph.databases.transactional_tables", lambda _: {"shop": []})
    assert check(project).exit_code == 0
    monkeypatch.setattr("spark_jobs.access.source_log.log_position", lambda _: 0x50)
    assert check(project).stdout.strip() == (
        "connector shop: its database's log is at 0/50, but silver has commits at 1/50: all "
        "changes count as older ones; see docs/runbooks/changes-lost.md"
    )
    monkeypatch.setattr("spark_jobs.access.source_log.log_position", lambda _: 0x1_0000_0050)
    assert check(project).exit_code == 0


# Long ago, so that a slow machine sees the same hour.
OLD = {"heartbeat_at": utc_now() - timedelta(hours=5, minutes=1)}


@pytest.mark.parametrize(
    ("name", "changed", "expected"),
    [
        ("silver.orders", OLD, ("silent, last seen 5 h", "stream-silent")),
        ("gold.spend", OLD, ("silent, last seen 5 h", "continuous-view")),
        ("sink.spend_redis", OLD, ("silent, last seen 5 h", "sink-behind")),
        (
            "bronze.orders",
            {"state": StreamState.REFUSED, "error": "gone\nmore"},
            ("refused: gone", "stream-refused"),
        ),
        (
            "gold.spend",
            {"state": StreamState.BLOCKED, "error": "rule"},
            ("blocked: rule", "continuous-view"),
        ),
        (
            "sink.spend_redis",
            {"state": StreamState.WAITING, "error": "it is down", "at": OLD["heartbeat_at"]},
            ("waiting: it is down", "sink-behind"),
        ),
        ("sink.spend_redis", {"state": StreamState.FAILED}, ("failed: no error", "sink-behind")),
        (
            "bronze.orders",
            {"lag_records": 1_000_001},
            ("1,000,001 records behind", "stream-silent"),
        ),
    ],
)
def test_each_problem_is_listed_with_its_runbook(
    project: Path,
    store: ControlStore,
    name: str,
    changed: dict[str, Any],
    expected: tuple[str, str],
) -> None:
    says, runbook = expected
    for each in EXPECTED:
        store.record_progress(report(each))
    store.record_progress(report(name, **changed))
    done = check(project)
    assert done.exit_code == 1
    [line] = done.stdout.splitlines()
    assert line.startswith(f"{name}: {says}")
    assert line.endswith(f"see docs/runbooks/{runbook}.md")
    assert Path(REPOSITORY, f"docs/runbooks/{runbook}.md").exists()


def test_schema_drift_is_listed_until_it_is_accepted(project: Path, store: ControlStore) -> None:
    for name in EXPECTED:
        store.record_progress(report(name))
    place = {"source": "orders", "topic": "orders", "partition": 2, "offset": 7}
    store.record_drifts(
        [
            Drift(kind=DriftKind.UNKNOWN, column="remark", detail="string", **place),
            # Of a declaration that is another one now.
            Drift(kind=DriftKind.RETYPED, column="of_the_past", **place),
        ]
    )
    done = check(project)
    assert done.exit_code == 1
    assert done.stdout == (
        'bronze.orders: field "remark" (string) is not declared since orders, partition 2, '
        "offset 7; see docs/runbooks/schema-drift.md\n"
    )
    words = ["--project", str(project), "source", "drift"]
    shown = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    (one,) = json.loads(shown.stdout)
    assert (one["column"], one["offset"], one["standing"]) == ("remark", 7, "open")
    status = CliRunner().invoke(app, [*words[:2], "status", "--json"], catch_exceptions=False)
    assert [one["column"] for one in json.loads(status.stdout)["drift"]] == ["remark"]
    why = ["--accept", "--reason", "nobody needs the remark"]
    done = CliRunner().invoke(app, [*words, "orders", *why], catch_exceptions=False)
    assert done.stdout == "Differences that are accepted now: 2\n"
    assert check(project).exit_code == 0


@pytest.mark.parametrize(
    ("error", "minutes", "named"),
    [
        ("Airflow takes no events", 30, True),
        ("Airflow takes no events", 10, False),
        (ASSET_UNKNOWN, 300, False),
        (NO_AIRFLOW, 300, False),
        (None, 300, False),
    ],
)
def test_publications_and_verdicts_whose_events_wait_are_named(
    project: Path, store: ControlStore, error: str | None, minutes: int, named: bool
) -> None:
    for name in EXPECTED:
        store.record_progress(report(name))
    since = utc_now() - timedelta(minutes=minutes)
    waits = None if error is None else since
    store.set_asset_cursor(AssetCursor("spend", "t", 3, since, error=error, waits_since=waits))
    verdict = verdict_cursor("spend")
    store.set_asset_cursor(AssetCursor(verdict, "", -1, since, error=error, waits_since=waits))
    store.set_asset_cursor(AssetCursor("gone", "t", 3, since, error="x", waits_since=since))
    done = check(project)
    assert done.exit_code == int(named)
    if named:
        for event in ("publication", "verdict"):
            line = rf"gold.spend: its {event} of 3\d min( \d+ s)? ago is no event"
            assert re.search(line, done.stdout)
        assert "docs/runbooks/asset-events.md" in done.stdout


def test_the_cause_nearest_to_the_sources_is_solved_first():
    books = ("continuous-view", "stream-refused", "connector-failed", "changes-lost")
    found = [Trouble(f"table {number}", "is late", book) for number, book in enumerate(books)]
    assert first_to_solve(found).runbook == "changes-lost"
    assert first_to_solve(found[:3]).runbook == "connector-failed"
    assert first_to_solve(found[:1]) == found[0]


def test_a_certificate_that_ends_soon_is_named(
    project: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for query in EXPECTED:
        store.record_progress(report(query))
    monkeypatch.setenv("TIDEMARK_SECURITY__ENABLED", "true")
    settings = load_settings(project)
    ensure_certificate(settings, KAFKA)
    assert "certificate" not in check(project).stdout
    key, authority = new_authority()
    write_secret(settings, certificate_name(KAFKA), signed(KAFKA, key, authority, days=3))
    done = check(project)
    assert done.exit_code == 1
    (line,) = [one for one in done.stdout.splitlines() if "certificate" in one]
    assert line.startswith("certificate tls/broker.pem: ends on ")
    assert line.endswith("`make up` renew it; see docs/runbooks/server-unreachable.md")
    secret_path(settings, AUTHORITY_KEY).unlink()
    assert "replace the file" in check(project).stdout

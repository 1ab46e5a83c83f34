"""The report of a day, out of a real ledger, real logs and a real quarantine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log
from tests.golden.declaration_cases import RIGHT, write_project

NOT_NULL = {"type": "expect_column_values_to_not_be_null", "column": "user_id"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "160")
    spend = RIGHT["sql/gold/spend.sql"].replace("*/", "freshness: 30 minutes\n*/")
    return write_project(tmp_path / "project", {"sql/gold/spend.sql": spend})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    (tmp_path / "state").mkdir()
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as opened:
        yield opened


def put(store: ControlStore, at: datetime, status: AttemptStatus, **changed: Any) -> None:
    attempt: dict[str, Any] = {
        "attempt_id": f"spend-{at.timestamp()}",
        "view": "spend",
        "tick": "t",
        "epoch": 1,
        "status": status,
        "started_at": at,
        "updated_at": at,
    }
    store.create_attempt(RefreshAttempt(**(attempt | changed)))


def verdict(outcome: str, severity: str) -> dict[str, Any]:
    failed = {**NOT_NULL, "severity": severity, "success": False}
    passed = {**NOT_NULL, "column": "spend", "severity": severity, "success": True}
    return {"outcome": outcome, "expectations": 2, "failed": 1, "results": [failed, passed]}


def quality(project: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--project", str(project), "quality", *words])
    assert done.exit_code == 0, done.output
    return done.output


def report(project: Path, at: datetime) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(quality(project, "--day", f"{at:%Y-%m-%d}", "--json"))
    return found


def versions(location: str, version: int) -> dict[str, Any]:
    found = log.table_version(location)
    assert found is not None
    return {"silver.orders": {"id": found.table_id, "version": version}}


def test_attempts_audits_and_rejected_records_of_a_day(project, store, tmp_path) -> None:
    now = utc_now()
    put(store, now - timedelta(days=2), AttemptStatus.FAILED)
    put(store, now, AttemptStatus.PUBLISHED, verdict=verdict("warned", "warning"))
    second = now + timedelta(microseconds=1)
    put(store, second, AttemptStatus.BLOCKED, verdict=verdict("blocked", "critical"))
    put(store, now + timedelta(microseconds=2), AttemptStatus.SKIPPED)
    rejected = {"reason": ["TOO_LARGE"] * 3, "quarantined_at": [now, now, now - timedelta(days=2)]}
    write_deltalake(str(tmp_path / "state/lake/_quarantine/clicks"), pa.table(rejected))

    found = report(project, now)

    [spend] = found["views"]
    assert spend["ended"] == {"published": 1, "blocked": 1, "skipped": 1}
    assert (spend["attempts"], spend["warned"], spend["late"]) == (3, 1, 0)
    assert [(one["column"], one["severity"]) for one in found["expectations"]] == [
        ("user_id", "warning"),
        ("user_id", "critical"),
    ]
    assert found["quarantine"] == [{"silver": "clicks", "reason": "TOO_LARGE", "records": 2}]

    text = quality(project, "--day", f"{now:%Y-%m-%d}")
    for part in ("spend", NOT_NULL["type"], "critical", "TOO_LARGE"):
        assert part in text


def test_what_was_published_too_long_after_a_change_was_late(project, store, tmp_path) -> None:
    orders = str(tmp_path / "state/lake/silver/orders")
    write_deltalake(orders, pa.table({"id": [1]}))
    write_deltalake(orders, pa.table({"id": [2]}), mode="append")
    changed = log.committed_at(orders, 1)
    assert changed is not None
    first, hour = versions(orders, 0), timedelta(hours=1)
    put(store, changed - hour, AttemptStatus.PUBLISHED, vector=first)
    # Nothing had changed for an hour, and then it took 29 minutes.
    second = changed + timedelta(minutes=29)
    put(store, second, AttemptStatus.PUBLISHED, vector=versions(orders, 1))
    assert report(project, second)["views"][0]["late"] == 0
    # No change in between, however long it was.
    third = second + timedelta(hours=2)
    put(store, third, AttemptStatus.PUBLISHED, vector=versions(orders, 1))
    assert report(project, third)["views"][0]["late"] == 0


def test_the_wait_counts_from_the_change_on(project, store, tmp_path) -> None:
    orders = str(tmp_path / "state/lake/silver/orders")
    for number in range(3):
        write_deltalake(orders, pa.table({"id": [number]}), mode="append")
    changed = log.committed_at(orders, 1)
    assert changed is not None
    put(store, changed, AttemptStatus.PUBLISHED, vector=versions(orders, 0))
    late = changed + timedelta(minutes=31)
    put(store, late, AttemptStatus.PUBLISHED, vector=versions(orders, 2))
    [spend] = report(project, late)["views"]
    assert (spend["late"], spend["longest"]) == (1, 31 * 60.0)
    assert "1, up to 31 min" in quality(project, "--day", f"{late:%Y-%m-%d}")


def test_a_day_of_which_nothing_is_known_is_yesterday_by_default(project) -> None:
    text = quality(project)
    yesterday = utc_now() - timedelta(days=1)
    assert f"gold views on {yesterday:%Y-%m-%d} (UTC)" in text
    # No audit ran, so no expectation passed.
    assert "No view was refreshed." in text
    assert "No record was rejected." in text


def test_expectations_passed_where_something_was_published(project, store) -> None:
    now = utc_now()
    put(store, now, AttemptStatus.SKIPPED)
    assert "No view was refreshed." in quality(project, "--day", f"{now:%Y-%m-%d}")
    put(store, now + timedelta(microseconds=1), AttemptStatus.PUBLISHED)
    text = quality(project, "--day", f"{now:%Y-%m-%d}")
    assert "Every expectation passed." in text
    assert "No view was refreshed." not in text


def test_a_day_that_has_not_begun_is_refused(project) -> None:
    """Its empty report said that every expectation passed."""
    tomorrow = utc_now() + timedelta(days=1)
    words = ["--project", str(project), "quality", "--day", f"{tomorrow:%Y-%m-%d}"]
    assert CliRunner().invoke(app, words).exit_code == 2
    assert "No record was rejected." in quality(project, "--day", f"{utc_now():%Y-%m-%d}")


@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-07", "1582-10-15"])
def test_any_day_of_the_calendar_has_a_report(project, day: str) -> None:
    assert f"gold views on {day} (UTC)" in quality(project, "--day", day)

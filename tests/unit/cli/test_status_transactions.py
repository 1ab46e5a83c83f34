"""The status of whole transactions: the common position, and the tables that are behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.frontiers import TableAtFrontier
from spark_jobs.state.progress import StreamProgress
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from tests.e2e.bank_world import project_files
from tests.e2e.running import write_files

POSITION = (3 << 32) + 0xABC


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    write_files(tmp_path / "project", project_files("transactional"))
    return tmp_path / "project"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    (tmp_path / "state").mkdir()
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as opened:
        yield opened


def note(store: ControlStore, position: int, *tables: str, at: datetime) -> None:
    store.note_frontiers(
        TableAtFrontier(
            "shop", position, TableName.parse(f"silver.{one}"), TableVersion("i", 1), at
        )
        for one in tables
    )


def status(project: Path, *options: str) -> str:
    words = ["--project", str(project), "status", *options]
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def test_the_common_position_and_late_tables_are_reported(
    project: Path, store: ControlStore
) -> None:
    assert "Database shop" not in status(project)
    now = utc_now()
    store.record_reports(
        [StreamProgress(query="silver.tellers", batch_id=0, records=1, at=now, heartbeat_at=now)]
    )
    assert "Database shop: no commit is in all tables yet." in status(project)
    others = ("accounts", "tellers", "branches")
    note(store, POSITION, *others, at=now)
    assert "Database shop: no commit is in all tables yet." in status(project)
    note(store, POSITION, *others, at=now - timedelta(minutes=6))
    assert "in all tables yet; behind: silver.history (never)." in status(project)
    note(store, POSITION, "history", at=now)
    assert "Database shop: whole transactions up to 3/ABC, " in status(project)
    note(store, POSITION + 1, *others, at=now)
    assert json.loads(status(project, "--json"))["databases"][0]["position"] == POSITION
    # A round that is on its way leaves nobody behind.
    assert "behind" not in status(project, "--check")

    note(store, POSITION, "history", at=now - timedelta(minutes=30))
    found = status(project, "--check")
    assert "silver.history: is behind the other tables of database shop, last 30 min" in found
    assert "docs/runbooks/table-behind.md" in found

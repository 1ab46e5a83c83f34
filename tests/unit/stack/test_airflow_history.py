"""What is deleted of Airflow's runs: after the days that the settings say, and nothing else."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import airflow_history
from spark_jobs.stack.airflow_config import airflow_home
from spark_jobs.stack.airflow_history import HIDING, clean_history
from spark_jobs.stack.errors import AirflowNotCleanedError

NOW = datetime(2026, 11, 20, 3, 17, tzinfo=UTC)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands that were run; each prints a line, and ends with the last entry's code."""
    commands: list[Any] = []

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        commands.append((command, options["env"]))
        return SimpleNamespace(returncode=CODE["airflow"], stdout="a line")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(airflow_history, "airflow_environment", lambda _: {"AIRFLOW_HOME": "here"})
    monkeypatch.setitem(CODE, "airflow", 0)
    return commands


CODE = {"airflow": 0}


def settings_of(tmp_path: Path, days: float) -> Settings:
    state = tmp_path / "state"
    return load_settings(tmp_path, state_dir=state, maintenance={"airflow_days": days})


def logs(settings: Settings) -> Path:
    return airflow_home(settings) / "logs"


def write(path: Path, *, days: float) -> Path:
    """A file in a directory, both of that age."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("four")
    then = (NOW - timedelta(days=days)).timestamp()
    for one in (path, path.parent, path.parent.parent):
        os.utime(one, (then, then))
    return path


def test_all_runs_stay_by_default(ended, tmp_path) -> None:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    log = write(logs(settings) / "dag_id=d/run_id=r/attempt=1.log", days=4000)
    assert clean_history(settings, now=NOW, dry_run=False) is None
    assert log.exists()
    assert ended == []


def test_nothing_is_asked_of_an_airflow_that_never_ran_here(ended, tmp_path) -> None:
    assert clean_history(settings_of(tmp_path, 30), now=NOW, dry_run=False) is None
    assert ended == []


def test_older_runs_leave_the_database_and_the_disk(ended, tmp_path, monkeypatch) -> None:
    settings = settings_of(tmp_path, 30)
    top = logs(settings) / "dag_id=gold__spend"
    old = write(top / "run_id=old/task_id=plan/attempt=1.log", days=31)
    mixed = write(top / "run_id=mixed/task_id=plan/attempt=1.log", days=31)
    new = write(top / "run_id=mixed/task_id=plan/attempt=2.log", days=29)
    target = write(tmp_path / "elsewhere/file", days=99)
    (logs(settings) / "latest").symlink_to(target)
    for name in HIDING:
        monkeypatch.setenv(name, "airflow-db-not-allowed:///")

    would = clean_history(settings, now=NOW, dry_run=True)
    assert would is not None
    assert (would.files, would.bytes) == (2, 8)
    assert old.exists()
    assert ended == []

    assert clean_history(settings, now=NOW, dry_run=False) == would
    assert not (top / "run_id=old").exists()
    assert not mixed.exists()
    assert new.exists()
    assert target.exists()
    [(command, environment)] = ended
    assert command[1:3] == ["db", "clean"]
    assert command[command.index("--clean-before-timestamp") + 1] == "2026-10-21T03:17:00+00:00"
    # Airflow keeps tasks away from its database by these variables.
    assert not environment.keys() & set(HIDING)
    assert environment["AIRFLOW_HOME"] == "here"
    # A second run finds nothing more.
    again = clean_history(settings, now=NOW, dry_run=False)
    assert again is not None
    assert again.files == 0
    assert top.is_dir()


def test_log_files_stay_when_the_database_keeps_its_runs(ended, tmp_path, monkeypatch) -> None:
    settings = settings_of(tmp_path, 30)
    log = write(logs(settings) / "dag_id=d/run_id=r/attempt=1.log", days=31)
    monkeypatch.setitem(CODE, "airflow", 1)
    with pytest.raises(AirflowNotCleanedError, match="ended with 1") as raised:
        clean_history(settings, now=NOW, dry_run=False)
    assert "a line" in raised.value.detail
    assert log.exists()

"""Deletes what Airflow keeps for ever: old runs in its database, and the log files of tasks.

``airflow db clean`` keeps the last scheduled run of each DAG, from which the next one follows.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from spark_jobs.settings import Settings
from spark_jobs.stack.airflow_config import airflow_environment, airflow_home
from spark_jobs.stack.errors import AirflowNotCleanedError

# Tables that grow with time; Airflow adds those that depend on them: tasks, their tries and XComs.
# The table of DAGs stays, because it says which of them a person has paused.
TABLES = (
    *("dag_run", "log", "asset_event", "job", "task_reschedule", "callback"),
    *("session", "revoked_token"),
)
# By these, Airflow keeps the code of tasks away from its database. This program is not theirs: it
# asks the configuration for the address again, which the account of the scheduler may read.
HIDING = ("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__SQL_ALCHEMY_CONN")
# Directories of a DAG and of a component stay: a new run makes its own below.
_KEPT_DEPTH = 1
TOLD = 2000


@dataclass(frozen=True)
class Cleaned:
    """What was deleted, or would be.

    Attributes:
        before: runs that started earlier leave the database, and files written earlier the disk.
        files: number of log files.
        bytes: their size.
    """

    before: datetime
    files: int
    bytes: int


def clean_history(settings: Settings, *, now: datetime, dry_run: bool) -> Cleaned | None:
    """Delete runs and log files that are older than ``maintenance.airflow_days``.

    Returns:
        None if all are kept, or Airflow has never run in this state directory.

    Raises:
        AirflowNotCleanedError: ``airflow db clean`` failed; no log file was deleted.
    """
    days, logs = settings.maintenance.airflow_days, airflow_home(settings) / "logs"
    if not days or not logs.is_dir():
        return None
    before = now - timedelta(days=days)
    files, folders = old_entries(logs, before)
    cleaned = Cleaned(before, len(files), sum(files.values()))
    if dry_run:
        return cleaned
    clean_database(settings, before)
    for path in files:
        path.unlink(missing_ok=True)
    for path in folders:
        # It is not empty if a run wrote to it meanwhile.
        with suppress(OSError):
            path.rmdir()
    return cleaned


def clean_database(settings: Settings, before: datetime) -> None:
    """Delete old rows by Airflow's own command, without an archive.

    Raises:
        AirflowNotCleanedError: it failed.
    """
    program = str(Path(sys.executable).parent / "airflow")
    command = [program, "db", "clean", "--clean-before-timestamp", before.isoformat()]
    options = ["--tables", ",".join(TABLES), "--skip-archive", "--error-on-cleanup-failure"]
    kept = {name: value for name, value in os.environ.items() if name not in HIDING}
    done = subprocess.run(
        [*command, *options, "--yes"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env={**kept, **airflow_environment(settings)},
        check=False,
    )
    if done.returncode != 0:
        raise AirflowNotCleanedError(done.returncode, done.stdout[-TOLD:])


def old_entries(logs: Path, before: datetime) -> tuple[dict[Path, int], list[Path]]:
    """The sizes of files that were last written earlier, and directories, the deepest first."""
    files: dict[Path, int] = {}
    folders: list[Path] = []
    for path, found in _entries(logs):
        if found.st_mtime >= before.timestamp():
            continue
        if stat.S_ISREG(found.st_mode):
            files[path] = found.st_size
        elif stat.S_ISDIR(found.st_mode) and len(path.relative_to(logs).parts) > _KEPT_DEPTH:
            folders.append(path)
    return files, folders


def _entries(logs: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Everything below, with its own status and not that of a link's target."""
    for folder, inner, names in os.walk(logs, topdown=False):
        for name in (*names, *inner):
            path = Path(folder, name)
            with suppress(FileNotFoundError):
                yield path, path.lstat()

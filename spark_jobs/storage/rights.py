"""File permissions for other accounts of the machine: gold is readable, state is private.

Files belong to the account that runs the pipeline, so no other account can write them. In the lake,
the permissions of the top-level directories decide who may read; files below have the usual mode.
All other files of the stack are private.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock

from spark_jobs.names import Layer
from spark_jobs.storage.errors import StateDirectoryError
from spark_jobs.storage.lake import Lake, remote_location

_OTHERS, _READ = 0o007, 0o005
_NEW = 0o750
_PRIVATE, _USUAL = 0o077, 0o022

# Directories of the stack in the state directory. The lake may be there too. PostgreSQL's files
# belong to another account, which protects them itself.
DIRECTORIES = (
    "airflow",
    "cassandra",
    "duckdb",
    "endpoint",
    "kafka",
    "locks",
    "logs",
    "object-store",
    "redis",
    "run",
    "secrets",
    "spark",
    "spark-local",
    "spark-warehouse",
    "supervisor",
)
FILES = (
    "alerts.jsonl",
    "certificates.lock",
    "control.db",
    "control.db-shm",
    "control.db-wal",
    "manifest.json",
    "stack.lock",
    "status.html",
)
_usual = Lock()
_users: list[int] = []


def make_state(state: Path) -> None:
    """Create the state directory; an existing one stays unchanged.

    Raises:
        StateDirectoryError: it cannot be created or written.
    """
    try:
        with usual_rights():
            state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateDirectoryError(state, error.strerror or type(error).__name__) from error
    if not os.access(state, os.W_OK | os.X_OK):
        raise StateDirectoryError(state, "this account may not write there")


def close_state(state: Path, *, makes: Iterable[str] = DIRECTORIES) -> None:
    """Create the state directory, and make the stack's files in it private.

    The directory itself keeps its mode: other accounts pass through it to the lake.

    Args:
        state: the state directory.
        makes: names of subdirectories to create.

    Raises:
        StateDirectoryError: it cannot be created or written.
    """
    make_state(state)
    for name in makes:
        with suppress(FileExistsError):
            (state / name).mkdir(mode=0o700)
    for name in (*DIRECTORIES, *FILES):
        # Missing ones, and those of another account, need no change.
        with suppress(OSError):
            mode = stat.S_IMODE((state / name).stat().st_mode)
            if mode & _PRIVATE:
                (state / name).chmod(mode & ~_PRIVATE)


@contextmanager
def private_files() -> Iterator[None]:
    """Files that this process and its children create in the context are private."""
    before = os.umask(_PRIVATE)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def usual_rights() -> Iterator[None]:
    """Files of the lake that this process creates in the context get the usual mode.

    A process of the stack creates private files by default. Spark sets the mode of its files
    itself.
    """
    with _usual:
        _users.append(os.umask(_USUAL))
    try:
        yield
    finally:
        with _usual:
            before = _users.pop()
            # The outermost context saved the process's umask; restore it when the last one exits.
            if not _users:
                os.umask(before)


def restrict(lake: Lake, *, readable: Collection[Layer]) -> None:
    """Deny other accounts access to the lake except some layers; creates missing directories.

    Permissions of owner and group stay. Directories of other accounts are skipped, and so are
    object stores, which have policies of their own.

    Args:
        lake: its root may not exist yet.
        readable: layers that every account may read.
    """
    if remote_location(lake.root):
        return
    for name in lake.folders:
        # An account that only reads the lake of another one cannot change it.
        with suppress(OSError), usual_rights():
            _set(Path(lake.root, name), is_readable=name in {*readable})


def _set(folder: Path, *, is_readable: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True, mode=_NEW)
    mode = stat.S_IMODE(folder.stat().st_mode)
    wanted = mode | _READ if is_readable else mode & ~_OTHERS
    if wanted != mode:
        folder.chmod(wanted)

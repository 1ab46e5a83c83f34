"""What other accounts of the machine may read: of the lake gold, of the state directory nothing.

Files belong to the account that runs the pipeline, so no other one writes them. In the lake, what
others may read is decided at the folders right below the root; the files below have the usual
rights. Everything else that the stack writes is for its owner only.
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

# What the stack keeps right below its state directory. The lake may lie there too; PostgreSQL's
# files are of an account of their own, which keeps them to itself.
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
    """Make the state directory; one that is there stays as it is.

    Raises:
        StateDirectoryError: it cannot be made, or nothing can be written there.
    """
    try:
        with usual_rights():
            state.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StateDirectoryError(state, error.strerror or type(error).__name__) from error
    if not os.access(state, os.W_OK | os.X_OK):
        raise StateDirectoryError(state, "this account may not write there")


def close_state(state: Path, *, makes: Iterable[str] = DIRECTORIES) -> None:
    """Make the state directory, and close what the stack keeps in it to other accounts.

    The directory itself stays as it is: other accounts go through it to the lake.

    Args:
        state: the directory.
        makes: the names below it that are made where they are not there.

    Raises:
        StateDirectoryError: it cannot be made, or nothing can be written there.
    """
    make_state(state)
    for name in makes:
        with suppress(FileExistsError):
            (state / name).mkdir(mode=0o700)
    for name in (*DIRECTORIES, *FILES):
        # One that is not there, or belongs to another account, needs no change.
        with suppress(OSError):
            mode = stat.S_IMODE((state / name).stat().st_mode)
            if mode & _PRIVATE:
                (state / name).chmod(mode & ~_PRIVATE)


@contextmanager
def private_files() -> Iterator[None]:
    """What this process and its children make meanwhile is for their owner only."""
    before = os.umask(_PRIVATE)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def usual_rights() -> Iterator[None]:
    """Files of the lake that this process makes meanwhile get the usual rights.

    The process may be one of the stack's parts, whose files are for their owner only. Spark sets
    the rights of its tables' files itself, and needs nothing of this.
    """
    with _usual:
        _users.append(os.umask(_USUAL))
    try:
        yield
    finally:
        with _usual:
            before = _users.pop()
            # The first one to come found the process's own mask; the last one to go puts it back.
            if not _users:
                os.umask(before)


def restrict(lake: Lake, *, readable: Collection[Layer]) -> None:
    """Close a lake's folders to other accounts, except for some layers; makes those that lack.

    The owner's and the group's rights stay as they are. A folder of another account is left to it,
    and an object store to its policies.

    Args:
        lake: its root may not be there yet.
        readable: the layers that every account may read.
    """
    if remote_location(lake.root):
        return
    for name in lake.folders:
        # Who only reads somebody else's lake makes and changes nothing there.
        with suppress(OSError), usual_rights():
            _set(Path(lake.root, name), is_readable=name in {*readable})


def _set(folder: Path, *, is_readable: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(exist_ok=True, mode=_NEW)
    mode = stat.S_IMODE(folder.stat().st_mode)
    wanted = mode | _READ if is_readable else mode & ~_OTHERS
    if wanted != mode:
        folder.chmod(wanted)

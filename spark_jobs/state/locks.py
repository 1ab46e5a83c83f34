"""Lock files: one writer per table on this machine; a lock ends with its process.

Delta on a local file system can lose a commit if two processes race. Leases cover other machines.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spark_jobs.names import TableName
from spark_jobs.state.errors import TableLockedError

UNSAFE: Final = re.compile(r"[^a-z0-9_.-]")


@contextmanager
def table_lock(directory: Path, table: TableName | str) -> Iterator[Path]:
    """Hold the table's lock file; fails at once if it is taken.

    Args:
        directory: directory of lock files; created with owner-only permissions.
        table: the table, or another name of a resource with one writer.

    Raises:
        TableLockedError: another process, or another part of this one, holds it.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = directory / f"{UNSAFE.sub('_', str(table))}.lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 200).decode(errors="replace").strip()
            raise TableLockedError(str(table), path, holder) from error
        os.truncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()}\n".encode())
        # Keep the file: after a delete, two processes could lock different files of one name.
        yield path
    finally:
        os.close(descriptor)

"""Deletes files that no retained version needs, while the table's writer runs.

It makes no commit: on a file system only the writer's process may commit to a table. It deletes the
files that a vacuum would delete. Files that were written or removed within the retention are kept,
so files of unfinished writes are kept too.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, FileType, PyFileSystem

from spark_jobs.storage import log
from spark_jobs.storage.lake import plain_location, remote_location
from spark_jobs.storage.log_files import LOG
from spark_jobs.storage.plain import files_are_rows


def cleanable(location: str) -> bool:
    """Whether the table exists and its log lists all files that it needs."""
    table = log.open_table(location)
    return table is not None and files_are_rows(table)


def stored_files(location: str) -> dict[str, int]:
    """Sizes in bytes of the files below a table's directory, by path; the log is left out."""
    if not remote_location(location):
        return dict(_local_files(Path(plain_location(location))))
    files = PyFileSystem(DeltaStorageHandler(location))
    found = files.get_file_info(FileSelector("", recursive=True, allow_not_found=True))
    return {
        one.path: one.size
        for one in found
        if one.type is FileType.File and not one.path.startswith(LOG)
    }


def last_written(location: str) -> datetime | None:
    """When a file below a directory was last written, in UTC; None if there is none."""
    if not remote_location(location):
        found_here = _found(Path(plain_location(location)))
        times = (datetime.fromtimestamp(stat.st_mtime, UTC) for _, stat in found_here)
        return max(times, default=None)
    files = PyFileSystem(DeltaStorageHandler(location))
    found = files.get_file_info(FileSelector("", recursive=True, allow_not_found=True))
    return max((one.mtime for one in found if one.mtime is not None), default=None)


def past_files(location: str, *, since: datetime, now: datetime) -> frozenset[str]:
    """Paths of files that only versions before an instant need, or that no version needs.

    Change feed files are among them, and what a write left that was never committed.

    Args:
        location: of a table for which ``cleanable`` is true.
        since: versions from then on stay readable, with their change feed.
        now: the current time.
    """
    table = log.open_table(location)
    if table is None:
        return frozenset()
    hours = math.ceil((now - since).total_seconds() / 3600)
    found = table.vacuum(
        retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=True
    )
    return frozenset(found) - frozenset(log.paths(table))


def remove_files(location: str, paths: Iterable[str]) -> None:
    """Delete files of a table; missing ones are ignored."""
    if remote_location(location):
        files = DeltaStorageHandler(location)
        for path in paths:
            files.delete_file(path)
        return
    for path in paths:
        (Path(plain_location(location)) / path).unlink(missing_ok=True)


def bytes_of(paths: Iterable[str], stored: Mapping[str, int]) -> int:
    """The total size of some files.

    Args:
        paths: of the files.
        stored: sizes by path, from ``stored_files``; a missing file has none.
    """
    return sum(stored.get(one, 0) for one in paths)


def _local_files(root: Path) -> Iterator[tuple[str, int]]:
    for path, stat in _found(root):
        relative = path.relative_to(root)
        if relative.parts[0] != LOG:
            yield relative.as_posix(), stat.st_size


def _found(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files below a directory; those that their writer deletes meanwhile are left out."""
    for folder, _, names in os.walk(root):
        for name in names:
            with suppress(FileNotFoundError):
                path = Path(folder, name)
                yield path, path.stat()

"""Removing files that no readable version needs, beside the table's writer.

Nothing is committed: on a file system only the writer's process may commit to a table. The list of
files is the one that a vacuum would remove; a file that was written, or left the table, within the
hours that are kept is never on it, so neither are those of a write that is under way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSelector, FileType, PyFileSystem

from spark_jobs.storage import log
from spark_jobs.storage.lake import plain_location, remote_location
from spark_jobs.storage.plain import files_are_rows

_LOG = "_delta_log"


def cleanable(location: str) -> bool:
    """Whether there is a table of which it can be told which files it needs."""
    table = log.open_table(location)
    return table is not None and files_are_rows(table)


def stored_files(location: str) -> dict[str, int]:
    """The files below a table's folder but for its log: bytes by path."""
    if not remote_location(location):
        return dict(_local_files(Path(plain_location(location))))
    files = PyFileSystem(DeltaStorageHandler(location))
    found = files.get_file_info(FileSelector("", recursive=True, allow_not_found=True))
    return {
        one.path: one.size
        for one in found
        if one.type is FileType.File and not one.path.startswith(_LOG)
    }


def past_files(location: str, *, since: datetime, now: datetime) -> frozenset[str]:
    """The files that only versions before an instant need, or none: their paths.

    Change feed files are among them, and what a write left that was never committed.

    Args:
        location: of a table that is ``cleanable``.
        since: versions from then on stay readable, and so do their changes.
        now: the present.
    """
    table = log.open_table(location)
    if table is None:
        return frozenset()
    hours = math.ceil((now - since).total_seconds() / 3600)
    found = table.vacuum(
        retention_hours=hours, dry_run=True, enforce_retention_duration=False, full=True
    )
    needed = set(log.files(table).column("path").to_pylist())
    return frozenset(found) - needed


def remove_files(location: str, paths: Iterable[str]) -> None:
    """Remove files of a table; those that are gone are fine."""
    if remote_location(location):
        files = DeltaStorageHandler(location)
        for path in paths:
            files.delete_file(path)
        return
    for path in paths:
        (Path(plain_location(location)) / path).unlink(missing_ok=True)


def bytes_of(paths: Iterable[str], stored: Mapping[str, int]) -> int:
    """The bytes of some files."""
    return sum(stored.get(one, 0) for one in paths)


def _local_files(root: Path) -> Iterator[tuple[str, int]]:
    for path in root.rglob("*"):
        relative = path.relative_to(root)
        if relative.parts[0] == _LOG:
            continue
        try:
            if path.is_file():
                yield relative.as_posix(), path.stat().st_size
        except FileNotFoundError:
            continue  # its writer took it away meanwhile

"""Detects new versions of Delta tables cheaply, by the file of the newest commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.names import TableVersion
from spark_jobs.storage import log
from spark_jobs.storage.lake import plain_location, remote_location


@dataclass(frozen=True)
class _Mark:
    """Identifies the file of a table's newest commit."""

    inode: int
    changed_at: int


@dataclass
class LogWatch:
    """The newest versions of tables; a log is read again only after it has changed.

    For an unchanged table on a file system, a call takes microseconds and not milliseconds. On an
    object store each call reads the log.
    """

    _seen: dict[str, tuple[TableVersion, _Mark]] = field(default_factory=dict)

    def version(self, location: str) -> TableVersion | None:
        """The table's id and newest version; None if there is no table.

        Raises:
            LogUnreadableError: the log cannot be read.
        """
        known = self._seen.pop(location, None)
        if known is None or known[1] != _mark(location, known[0].version):
            found = log.table_version(location)
            mark = None if found is None else _mark(location, found.version)
            if found is None or mark is None:
                return found
            known = (found, mark)
        self._seen[location] = known
        return known[0]


def _mark(location: str, version: int) -> _Mark | None:
    """The mark of a table's newest version; None if a newer version exists, or in an object store.

    A table that was recreated at the same place has another file.
    """
    if remote_location(location):
        return None
    folder = Path(plain_location(location), "_delta_log")
    try:
        newest = (folder / f"{version:020}.json").stat()
    except OSError:
        return None
    if (folder / f"{version + 1:020}.json").exists():
        return None
    return _Mark(newest.st_ino, newest.st_mtime_ns)

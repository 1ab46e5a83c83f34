"""Noticing that a Delta table moved, for those who look often: one file is looked at, not read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.names import TableVersion
from spark_jobs.storage import log
from spark_jobs.storage.lake import plain_location, remote_location


@dataclass(frozen=True)
class _Mark:
    """What tells the file of a table's newest commit from any other."""

    inode: int
    changed_at: int


@dataclass
class LogWatch:
    """The newest versions of tables, each read again only when its log has changed.

    On a file system an unchanged table costs microseconds; its log took milliseconds to read. On
    an object store every question reads the log.
    """

    _seen: dict[str, tuple[TableVersion, _Mark]] = field(default_factory=dict)

    def version(self, location: str) -> TableVersion | None:
        """The table's identity and newest version, or None where there is no table.

        Raises:
            LogUnreadableError: the log is not one.
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
    """The mark of a table at its newest version; None where that is not its newest, or remote.

    Another table that lies at the same place now has another file there, at any version.
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

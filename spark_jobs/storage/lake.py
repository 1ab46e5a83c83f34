"""Where each table lies below the storage root. Names only: nothing here reads or writes.

The root is an absolute path or the URL of an object store, so parts are joined with "/" and never
with the operating system's path functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from spark_jobs.names import RESERVED_DIRECTORY_PREFIX, Layer, TableName


class _Source(Protocol):
    @property
    def location(self) -> str | None: ...


class _Manifest(Protocol):
    @property
    def sources(self) -> Mapping[str, _Source]: ...


def plain_location(location: str) -> str:
    """A ``file:`` URL as the path it stands for, any other location without a trailing slash.

    >>> plain_location("file:///data/my%20lake/")
    '/data/my lake'
    >>> plain_location("s3a://bucket/lake/")
    's3a://bucket/lake'
    """
    if location.startswith("file:"):
        location = unquote(urlsplit(location).path)
    return location.rstrip("/") or "/"


def remote_location(location: str) -> bool:
    """Whether a location is on an object store, out of reach of the file system.

    >>> remote_location("s3a://bucket/lake"), remote_location("file:///lake")
    (True, False)
    """
    return "://" in plain_location(location)


# What lies in the lake beside the layers.
_KINDS = (
    "changes",
    "checkpoints",
    "environments",
    "locks",
    "quarantine",
    "rebuild",
    "releases",
    "staging",
    "state",
    "tombstones",
)


def lock_directory(lake: str, state: Path) -> Path:
    """Where lock files lie: in the lake, so that whoever writes there on this machine meets them.

    An object store has no locks; there they keep the processes of one state directory apart.

    >>> str(lock_directory("/lake", Path("/state"))), str(lock_directory("s3a://b", Path("/state")))
    ('/lake/_locks', '/state/locks')
    """
    if remote_location(lake):
        return state / "locks"
    return Path(plain_location(lake)) / f"{RESERVED_DIRECTORY_PREFIX}locks"


@dataclass(frozen=True)
class Lake:
    """The layout below one storage root.

    >>> Lake("/lake").location(TableName.parse("gold.daily"))
    '/lake/gold/daily'
    >>> Lake("s3a://bucket/x/").staging("daily", "a1")
    's3a://bucket/x/_staging/daily/a1'
    """

    root: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", plain_location(self.root))

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of all folders right below the root."""
        return (*Layer, *(f"{RESERVED_DIRECTORY_PREFIX}{kind}" for kind in _KINDS))

    def location(self, table: TableName) -> str:
        """A table that this project writes."""
        return f"{self.root}/{table.layer}/{table.name}"

    def quarantine(self, silver: str) -> str:
        """The rejected records of a silver table."""
        return self._reserved("quarantine", silver)

    def releases(self, silver: str) -> str:
        """What a person decided about rejected records of a silver table, and what came of it."""
        return self._reserved("releases", silver)

    def tombstones(self, silver: str) -> str:
        """The deleted keys of a silver table, so that a late change cannot bring them back."""
        return self._reserved("tombstones", silver)

    def changes(self, silver: str) -> str:
        """The changes that the SCD type 2 rows of a silver table are made of."""
        return self._reserved("changes", silver)

    def rebuild(self, silver: str) -> str:
        """Where a silver table is built from bronze beside the live one."""
        return self._reserved("rebuild", silver)

    def staging(self, view: str, attempt: str) -> str:
        """One attempt's result before it is published."""
        return self._reserved("staging", f"{view}/{attempt}")

    def state(self, view: str, definition: str, number: int) -> str:
        """The groups that the maintenance of a view keeps; another definition has others."""
        return f"{self.states(view, definition)}/{number}"

    def states(self, view: str, definition: str = "") -> str:
        """All groups that are kept for a definition of a view; without one, for the view."""
        return self._reserved("state", f"{view}/{definition[:16]}".rstrip("/"))

    def environment(self, name: str, view: str = "") -> str:
        """A view's table in a virtual environment; without a view, all of its tables."""
        return self._reserved("environments", f"{name}/{view}".rstrip("/"))

    def checkpoint(self, query: str, epoch: int) -> str:
        """A streaming query's checkpoint; a new epoch starts a new one."""
        return f"{self.checkpoints(query)}/{epoch}"

    def checkpoints(self, query: str) -> str:
        """All checkpoints of a streaming query."""
        return self._reserved("checkpoints", query)

    def _reserved(self, kind: str, rest: str) -> str:
        return f"{self.root}/{RESERVED_DIRECTORY_PREFIX}{kind}/{rest}"


@dataclass(frozen=True)
class TableLocations:
    """Every table's location: in the lake, or where somebody else's Delta table lies."""

    lake: Lake
    manifest: _Manifest

    def of(self, table: TableName) -> str:
        """The location of a table that SQL can name."""
        if table.layer is Layer.BRONZE:
            source = self.manifest.sources.get(table.name)
            if source is not None and source.location is not None:
                return plain_location(source.location)
        return self.lake.location(table)


@dataclass(frozen=True)
class EnvironmentLocations(TableLocations):
    """The same within a virtual environment: its own views lie there, all else in production.

    >>> class Nothing:
    ...     sources = {}
    >>> places = EnvironmentLocations(Lake("/lake"), Nothing(), "ana", frozenset({"daily"}))
    >>> places.of(TableName.parse("gold.daily")), places.of(TableName.parse("gold.other"))
    ('/lake/_environments/ana/daily', '/lake/gold/other')
    """

    environment: str
    views: Collection[str]

    def of(self, table: TableName) -> str:
        """The location of a table that SQL can name."""
        if table.layer is Layer.GOLD and table.name in self.views:
            return self.lake.environment(self.environment, table.name)
        return super().of(table)

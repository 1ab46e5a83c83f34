"""Locations of tables below the storage root. Only names: nothing here reads or writes.

The root is an absolute path or the URL of an object store, so parts are joined with "/", never with
the functions of ``os.path``.
"""

from __future__ import annotations

import socket
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
    """A ``file:`` URL as a path; any other location without a trailing slash.

    >>> plain_location("file:///data/my%20lake/")
    '/data/my lake'
    >>> plain_location("s3a://bucket/lake/")
    's3a://bucket/lake'
    """
    if location.startswith("file:"):
        location = unquote(urlsplit(location).path)
    return location.rstrip("/") or "/"


def remote_location(location: str) -> bool:
    """Whether a location is in an object store and not on a file system.

    >>> remote_location("s3a://bucket/lake"), remote_location("file:///lake")
    (True, False)
    """
    return "://" in plain_location(location)


# Reserved directories of the lake, in addition to the layers.
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


def this_machine(state: Path) -> str:
    """The owner of a lease that all processes with a state directory share."""
    return f"{socket.gethostname()}:{state}"


def lock_directory(lake: str, state: Path) -> Path:
    """The directory of lock files: in the lake, so that all writers on this machine share it.

    An object store has no locks; there only processes with the same state directory exclude each
    other.

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
        """Names of all top-level directories."""
        return (*Layer, *(f"{RESERVED_DIRECTORY_PREFIX}{kind}" for kind in _KINDS))

    def location(self, table: TableName) -> str:
        """A table of one of the layers."""
        return f"{self.root}/{table.layer}/{table.name}"

    def quarantine(self, silver: str) -> str:
        """Rejected records of a silver table."""
        return self._reserved("quarantine", silver)

    def rejected_lines(self, source: str) -> str:
        """Rejected lines of a source's file."""
        return self._reserved("quarantine", f"seed-{source}")

    def releases(self, silver: str) -> str:
        """Decisions about rejected records of a silver table, and their outcomes."""
        return self._reserved("releases", silver)

    def tombstones(self, silver: str) -> str:
        """Deleted keys of a silver table, so that a late change cannot bring them back."""
        return self._reserved("tombstones", silver)

    def changes(self, silver: str) -> str:
        """All changes from which the SCD type 2 rows of a silver table are computed."""
        return self._reserved("changes", silver)

    def rebuild(self, silver: str) -> str:
        """A silver table that is being rebuilt from bronze."""
        return self._reserved("rebuild", silver)

    def staging(self, view: str, attempt: str) -> str:
        """The staged result of an attempt."""
        return self._reserved("staging", f"{view}/{attempt}")

    def state(self, view: str, definition: str, number: int) -> str:
        """A table of aggregate state of a view; each definition has its own."""
        return f"{self.states(view, definition)}/{number}"

    def states(self, view: str, definition: str = "") -> str:
        """All aggregate state of a definition of a view; without a definition, of the view."""
        return self._reserved("state", f"{view}/{definition[:16]}".rstrip("/"))

    def environment(self, name: str, view: str = "") -> str:
        """A view's table in an environment; without a view, the directory of all its tables."""
        return self._reserved("environments", f"{name}/{view}".rstrip("/"))

    def checkpoint(self, query: str, epoch: int) -> str:
        """A streaming query's checkpoint of an epoch."""
        return f"{self.checkpoints(query)}/{epoch}"

    def checkpoints(self, query: str) -> str:
        """All checkpoints of a streaming query."""
        return self._reserved("checkpoints", query)

    def _reserved(self, kind: str, rest: str) -> str:
        return f"{self.root}/{RESERVED_DIRECTORY_PREFIX}{kind}/{rest}"


@dataclass(frozen=True)
class TableLocations:
    """Locations of all tables: in the lake, or of an external Delta table."""

    lake: Lake
    manifest: _Manifest

    def of(self, table: TableName) -> str:
        """The location of a table, by its name in SQL."""
        if table.layer is Layer.BRONZE:
            source = self.manifest.sources.get(table.name)
            if source is not None and source.location is not None:
                return plain_location(source.location)
        return self.lake.location(table)


@dataclass(frozen=True)
class EnvironmentLocations(TableLocations):
    """Locations within an environment: its own views, and production for all other tables.

    >>> class Nothing:
    ...     sources = {}
    >>> places = EnvironmentLocations(Lake("/lake"), Nothing(), "ana", frozenset({"daily"}))
    >>> places.of(TableName.parse("gold.daily")), places.of(TableName.parse("gold.other"))
    ('/lake/_environments/ana/daily', '/lake/gold/other')
    """

    environment: str
    views: Collection[str]

    def of(self, table: TableName) -> str:
        """The location of a table, by its name in SQL."""
        if table.layer is Layer.GOLD and table.name in self.views:
            return self.lake.environment(self.environment, table.name)
        return super().of(table)

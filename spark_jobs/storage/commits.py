"""Reads what the commits of a Delta table say about themselves, for ``log``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.storage.lake import plain_location


@dataclass(frozen=True)
class Commit:
    """One commit of a table.

    Attributes:
        metadata: the user metadata, if it is a JSON object; otherwise None.
    """

    version: int
    timestamp: datetime
    operation: str
    metadata: Mapping[str, Any] | None
    metrics: Mapping[str, Any]


def commit(location: str, version: int) -> Commit | None:
    """The commit of a version; None if it is no longer readable or has no timestamp.

    It reads the commit's file, because the history of a table opened at a version still starts at
    the newest commit.
    """
    info = _commit_info(location, version)
    if info is None or "timestamp" not in info:
        return None
    return _commit({**info, "version": version})


def history(location: str, table: DeltaTable, limit: int | None) -> tuple[Commit, ...]:
    """The newest commits of a table, newest first; ``limit=None``: all that the log still has."""
    found = tuple(_commit(entry) for entry in table.history(limit))
    # delta-rs leaves out commits without information, which is optional, and numbers the others
    # without a gap. Then the number of the oldest one is too high, or there are older ones.
    if found and commit(location, found[-1].version) == found[-1]:
        last = found[-1].version
        if len(found) == limit or not last or _commit_info(location, last - 1) is None:
            return found
    return tuple(islice(_commits_down_from(location, table.version()), limit))


def _commits_down_from(location: str, version: int) -> Iterator[Commit]:
    """The commits that the log still has, from a version on, newest first."""
    for one in range(version, -1, -1):
        info = _commit_info(location, one)
        if info is None:
            return
        yield _commit({**info, "version": one})


def _commit_info(location: str, version: int) -> Mapping[str, Any] | None:
    """What a commit says about itself, perhaps nothing; None if it is no longer readable."""
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    try:
        with files.open_input_file(f"_delta_log/{version:020}.json") as file:
            actions = [json.loads(line) for line in file.read().splitlines() if line.strip()]
    except OSError:
        return None
    return next((one["commitInfo"] for one in actions if "commitInfo" in one), {})


def _commit(entry: Mapping[str, Any]) -> Commit:
    return Commit(
        version=int(entry["version"]),
        timestamp=datetime.fromtimestamp(int(entry.get("timestamp", 0)) / 1000, tz=UTC),
        operation=str(entry.get("operation", "")),
        metadata=_json_object(entry.get("userMetadata")),
        metrics=entry.get("operationMetrics") or {},
    )


def _json_object(text: object) -> Mapping[str, Any] | None:
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""When rows became visible: a table's commits, and the timestamps of their rows.

A commit is visible when its file is in the log, so the file's time counts, not the one in the
commit. Files that were compacted since are still on disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq

from spark_jobs.names import TableName
from spark_jobs.planning.watermark import Watermark
from spark_jobs.storage import log


@dataclass(frozen=True)
class Arrival:
    """A commit that added rows.

    Attributes:
        at: when it became visible, in seconds since 1970.
        sent_at: when each of its rows was sent, likewise.
    """

    version: int
    at: float
    sent_at: np.ndarray


def arrivals(location: str, column: str) -> list[Arrival]:
    """The commits of a table on this machine that added rows, oldest first.

    Args:
        location: of the table.
        column: a timestamp column with the time when a row was sent.
    """
    found = []
    for version, at, paths in _commits(location):
        times = [
            pq.read_table(Path(location, unquote(path)), columns=[column], partitioning=None)
            .column(column)
            .to_numpy()
            for path in paths
        ]
        if times:
            sent_at = np.concatenate(times).astype("datetime64[us]").astype(np.int64) / 1e6
            found.append(Arrival(version, at, sent_at))
    return found


def publications(location: str, table: TableName) -> list[tuple[int, float]]:
    """For each publication of a view: the version of an input that it shows, and since when."""
    times = {version: at for version, at, _ in _commits(location)}
    found = []
    for commit in reversed(log.commits(location)):
        mark = Watermark.from_metadata(commit.metadata)
        version = None if mark is None else mark.vector.get(table)
        if version is not None and commit.version in times:
            found.append((version.version, times[commit.version]))
    return found


def delays(found: Sequence[Arrival]) -> np.ndarray:
    """Seconds from when each row was sent until its commit.

    >>> delays([Arrival(1, 10.0, np.array([8.0, 9.5]))]).tolist()
    [2.0, 0.5]
    """
    return np.concatenate([one.at - one.sent_at for one in found])


def delays_through(found: Sequence[Arrival], shown: Sequence[tuple[int, float]]) -> np.ndarray:
    """Seconds from when each row was sent until a view showed it.

    Args:
        found: the commits of the view's input.
        shown: from ``publications``; the last one shows every commit.

    >>> rows = [Arrival(1, 10.0, np.array([9.0])), Arrival(3, 12.0, np.array([11.0]))]
    >>> delays_through(rows, [(0, 8.0), (2, 11.0), (3, 15.0)]).tolist()
    [2.0, 4.0]
    """
    first = [next(at for version, at in shown if version >= one.version) for one in found]
    return np.concatenate([at - one.sent_at for at, one in zip(first, found, strict=True)])


def _commits(location: str) -> Iterator[tuple[int, float, list[str]]]:
    """Version, time and added files of every commit in the log."""
    for file in sorted(Path(location, "_delta_log").glob("*.json")):
        lines = file.read_text(encoding="utf-8").splitlines()
        added = [json.loads(line)["add"] for line in lines if line.startswith('{"add"')]
        paths = [one["path"] for one in added if one.get("dataChange", True)]
        yield int(file.stem), file.stat().st_mtime, paths

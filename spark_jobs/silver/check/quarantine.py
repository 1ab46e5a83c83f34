"""Reads quarantine: counts by reason, and the records."""

from __future__ import annotations

import operator
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

import pyarrow.compute as pc

from spark_jobs.silver.store.tables import QUARANTINE_COLUMNS
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.reader import read_columns


@dataclass(frozen=True)
class Rejection:
    """Rejected records of a silver table with the same reason."""

    silver: str
    reason: str
    records: int
    latest_arrival: datetime


@dataclass(frozen=True)
class RejectedRecord:
    """A rejected record as received, with the reason.

    Attributes:
        timestamp: Kafka's timestamp.
        detail: the column, or another detail of the reason.
    """

    topic: str
    partition: int
    offset: int
    timestamp: datetime | None
    arrived_at: datetime
    quarantined_at: datetime
    attempts: int
    reason: str
    detail: str | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def rejections(silver: str, location: str) -> list[Rejection]:
    """Counts of a silver table's rejected records by reason, most frequent first.

    Args:
        silver: the table's name.
        location: of its quarantine; an empty list if that does not exist.
    """
    counts: Counter[str] = Counter()
    latest: dict[str, datetime] = {}
    try:
        found = read_columns(location, ["reason", "arrived_at"])
    except TableMissingError:
        return []
    for row in found.to_pylist():
        reason, arrived_at = row["reason"], row["arrived_at"]
        counts[reason] += 1
        latest[reason] = max(latest.get(reason, arrived_at), arrived_at)
    return [
        Rejection(silver, reason, count, latest[reason]) for reason, count in counts.most_common()
    ]


def rejected_records(
    location: str,
    *,
    limit: int,
    reason: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
) -> list[RejectedRecord]:
    """The rejected records that arrived last, newest first.

    Args:
        location: of the quarantine; an empty list if that does not exist.
        limit: maximum number of records.
        reason: only records with this reason.
        partition: only records of this partition.
        offset: only records at this offset.
    """
    wanted_values = {"reason": reason, "partition": partition, "offset": offset}
    conditions = [
        pc.field(name) == value for name, value in wanted_values.items() if value is not None
    ]
    chosen = reduce(operator.and_, conditions) if conditions else None
    try:
        places = read_columns(location, ["arrived_at", "partition", "offset"], where=chosen)
    except TableMissingError:
        return []
    # Values may be large, so they are read only for the chosen records.
    order = [("arrived_at", "descending"), ("offset", "descending"), ("partition", "descending")]
    newest = places.sort_by(order).slice(0, limit).to_pylist()
    wanted = [(row["partition"], row["offset"]) for row in newest]
    partitions, offsets = ([place[part] for place in wanted] for part in (0, 1))
    near = pc.field("partition").isin(partitions) & pc.field("offset").isin(offsets)
    names = [column.name for column in QUARANTINE_COLUMNS]
    rows = {
        (row["partition"], row["offset"]): row
        for row in read_columns(location, names, where=near).to_pylist()
    }
    # A record may be reprocessed between the two readings.
    return [_record(rows[place]) for place in wanted if place in rows]


def _record(row: dict[str, Any]) -> RejectedRecord:
    headers = tuple((one["key"], one["value"]) for one in row["headers"] or ())
    return RejectedRecord(**{**row, "headers": headers})

"""The running batches of streams with their number of records, from the checkpoints.

A query reports after each batch. Its first one may be a whole snapshot and take minutes, during
which there is nothing else to show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject


@dataclass(frozen=True)
class BatchInWork:
    """A batch that was planned and has not finished.

    Attributes:
        number: number of the batch, from 0.
        records: upper limit of its records; None if unknown.
        since: when it was planned; None if unknown.
    """

    number: int
    records: int | None
    since: datetime | None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes; ``since`` in ISO 8601."""
        since = None if self.since is None else self.since.isoformat()
        return {"number": self.number, "records": self.records, "since": since}


def batches_in_work(project: OpenProject) -> dict[str, BatchInWork]:
    """The running batch of each streaming query by name, without idle queries."""
    from spark_jobs.storage.checkpoints import newest_checkpoint
    from spark_jobs.storage.lake import Lake

    lake, manifest = Lake(project.settings.lake), project.manifest
    found = {}
    for source in manifest.sources.values():
        if source.topic is not None:
            name = str(source.table_name)
            found[name] = batch_in_work(newest_checkpoint(lake, name))
    for entry in manifest.silver.values():
        read = manifest.sources.get(entry.source)
        if read is not None and read.topic is not None:
            name = str(entry.table_name)
            checkpoint = lake.checkpoint(name, project.store.epoch(name))
            found[name] = batch_in_work(checkpoint, bronze=lake.location(read.table_name))
    return {name: one for name, one in found.items() if one is not None}


def batch_in_work(checkpoint: str, *, bronze: str | None = None) -> BatchInWork | None:
    """The running batch of a query; None while it is idle, or if its checkpoint is damaged.

    A query with a damaged checkpoint is refused, which its own row shows.

    Args:
        checkpoint: location of the query's checkpoint.
        bronze: location of the table that it reads; None if it reads Kafka.
    """
    from spark_jobs.storage.errors import CheckpointFormatError

    try:
        return _batch_in_work(checkpoint, bronze)
    except (CheckpointFormatError, ValueError, LookupError, AttributeError):
        return None


def _batch_in_work(checkpoint: str, bronze: str | None) -> BatchInWork | None:
    from spark_jobs.storage.checkpoints import last_committed, last_planned, planned

    number, ended = last_planned(checkpoint), last_committed(checkpoint)
    if number is None or (ended is not None and ended.batch_id >= number):
        return None
    batch, before = planned(checkpoint, number), planned(checkpoint, number - 1)
    if batch is None:
        return None
    start = {} if before is None else before.offsets
    if bronze is None:
        return BatchInWork(number, _of_topic(start, batch.offsets), batch.at)
    records = _of_table(bronze, batch.offsets) if before is None else None
    return BatchInWork(number, records, batch.at)


def _of_topic(start: Mapping[str, Any], end: Mapping[str, Any]) -> int:
    """Number of offsets in between; before the first batch a partition starts at 0."""
    return sum(_spans(start, end))


def _spans(start: Mapping[str, Any], end: Mapping[str, Any]) -> Iterator[int]:
    for topic, partitions in end.items():
        for partition, offset in partitions.items():
            yield int(offset) - int(start.get(topic, {}).get(partition, 0))


def _of_table(location: str, end: Mapping[str, Any]) -> int | None:
    """Row count of the version at which a first batch ends."""
    from spark_jobs.errors import LakehouseError
    from spark_jobs.storage.log import size, table_version

    try:
        newest = table_version(location)
        upto = end.get("reservoirVersion")
        if newest is None or not isinstance(upto, int):
            return None
        return size(location, min(upto, newest.version)).rows
    except LakehouseError:
        return None

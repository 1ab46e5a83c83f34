"""Estimates how many records are still in flight, from offsets, stream reports and Delta logs.

No record and no row is read, so it is cheap. It proves nothing: when nothing is in flight any more,
the balances are worth computing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.serving.project import OpenProject


@dataclass(frozen=True)
class Arrival:
    """One silver table and its source.

    Attributes:
        unread: records of the topic that bronze has not reported.
        uncounted: rows of bronze that no batch of the silver table has counted.
    """

    silver: str
    unread: int
    uncounted: int

    @property
    def pending(self) -> int:
        """Number of records in flight."""
        return self.unread + self.uncounted


def arrivals(project: OpenProject, topics: Topics) -> list[Arrival]:
    """The arrival of records in every silver table over a topic.

    Raises:
        KafkaUnreachableError: no broker answers.
        TableMissingError: a bronze table does not exist yet.
    """
    from spark_jobs.storage.lake import Lake
    from spark_jobs.storage.log import size

    manifest, store = project.manifest, project.store
    lake = Lake(project.settings.lake)
    fed = [
        (entry, manifest.sources[entry.source])
        for entry in manifest.silver.values()
        if manifest.sources[entry.source].topic is not None
    ]
    ends = topics.ends(source.topic or "" for _, source in fed)
    reported = {one.query: one.end_offsets for one in store.progress()}
    found = []
    for entry, source in fed:
        topic, bronze = source.topic or "", source.table_name
        epoch = store.epoch(str(entry.table_name))
        counted = store.silver_totals(entry.name, epoch=epoch).records
        rows = size(lake.location(bronze)).rows or 0
        unread = ahead(ends.get(topic, {}), (reported.get(str(bronze)) or {}).get(topic, {}))
        found.append(Arrival(entry.name, unread, max(0, rows - counted)))
    return found


def ahead(ends: Mapping[int, int], reported: Mapping[str, Any]) -> int:
    """Number of offsets between reported positions and the partitions' ends.

    Args:
        ends: offset of the next record, by partition.
        reported: offset of the next record to read, by partition as text.

    >>> ahead({0: 7, 1: 5}, {"0": 4})
    8
    """
    return sum(max(0, end - int(reported.get(str(part), 0))) for part, end in ends.items())

"""Up to which position of a source database's log bronze has changes, from its last records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.checkpoints import last_committed, last_planned, newest_checkpoint, planned
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.last_records import near
from spark_jobs.storage.reader import read_columns


def newest_position(lake: Lake, source: SourceEntry) -> int:
    """The newest position that the last records of a captured table tell.

    Returns:
        0 if they tell none, or cannot be read.
    """
    found = [0]
    # A checkpoint that is not whole ends in one of the other errors.
    with suppress(LakehouseError, ValueError, LookupError, AttributeError):
        for where in map(near, _read_to(lake, source)):
            if where is not None:
                place = lake.location(source.table_name)
                rows = read_columns(place, [BronzeColumn.VALUE], where=where)
                for value in rows.column(BronzeColumn.VALUE).to_pylist():
                    found += positions(value)
    return max(found)


def positions(value: bytes | None) -> list[int]:
    r"""The log positions in a record of Debezium, as JSON; none in any other.

    >>> positions(b'{"payload": {"source": {"lsn": 90, "sequence": "[null,\\"88\\"]"}}}')
    [90, 88]
    >>> positions(None), positions(b"[]"), positions(b'{"source": {"lsn": null}}')
    ([], [], [])
    """
    try:
        document = json.loads(value or b"null")
        source = document.get("payload", document)["source"]
        told = [source["lsn"], *json.loads(source.get("sequence") or "[]")]
        return [int(one) for one in told if one is not None]
    except (ValueError, TypeError, LookupError, AttributeError):
        return []


def _read_to(lake: Lake, source: SourceEntry) -> Iterator[dict[int, int]]:
    """The ends of the query's newest batches by partition: the last may not have landed."""
    checkpoint = newest_checkpoint(lake, str(source.table_name))
    newest = last_planned(checkpoint)
    ends = last_committed(checkpoint), None if newest is None else planned(checkpoint, newest)
    for batch in ends:
        offsets = {} if batch is None else batch.offsets.get(source.topic or "", {})
        yield {int(partition): int(offset) for partition, offset in offsets.items()}

"""Where the reading of a topic goes on, told by the bronze table instead of a checkpoint.

A commit of a bronze table holds all records of the offsets that a batch covers. So the highest
offset of each partition tells where to go on, and a stream whose checkpoint is lost or damaged
can start a new one from there. A person decides that: files beside the new checkpoint keep who,
why, and which records were left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import pyarrow.compute as pc

from spark_jobs.bronze.errors import OffsetRange
from spark_jobs.bronze.topics import TopicFacts
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.checkpoints import read_text, write_text
from spark_jobs.storage.reader import read_columns

# How Spark writes the first offset that a partition still holds.
_EARLIEST = -2


@dataclass(frozen=True)
class Start:
    """Where a new checkpoint begins.

    Attributes:
        held: the next offset by the bronze table, by partition; it must still say so at the start.
        offsets: the offset to begin with, by partition. A partition that is not there is read
            from its first record.
        lost: offsets in between, whose records Kafka has deleted.
    """

    held: Mapping[int, int]
    offsets: Mapping[int, int]
    lost: tuple[OffsetRange, ...]


def next_offsets(table: str) -> dict[int, int]:
    """The offset after the last that a bronze table holds, by partition.

    Raises:
        TableMissingError: there is no bronze table.
    """
    rows = read_columns(table, [BronzeColumn.PARTITION, BronzeColumn.OFFSET])
    highest = rows.group_by(BronzeColumn.PARTITION).aggregate([(BronzeColumn.OFFSET, "max")])
    after = pc.add(highest.column(f"{BronzeColumn.OFFSET}_max"), 1)
    partitions = highest.column(BronzeColumn.PARTITION).to_pylist()
    return dict(zip(partitions, after.to_pylist(), strict=True))


def start_after(held: Mapping[int, int], facts: TopicFacts) -> Start:
    """Where a new checkpoint would begin.

    Args:
        held: the next offset by the bronze table, by partition.
        facts: the topic as it is now.
    """
    first = {partition: facts.first.get(partition, at) for partition, at in held.items()}
    lost = tuple(
        OffsetRange(partition, at, first[partition])
        for partition, at in sorted(held.items())
        if first[partition] > at
    )
    return Start(held, {one: max(at, first[one]) for one, at in held.items()}, lost)


def write_start(checkpoint: str, start: Start, *, by: str, reason: str, at: str) -> None:
    """Keep where a checkpoint begins, and who decided it, why and when."""
    said = {"by": by, "reason": reason, "at": at}
    write_text(f"{checkpoint}.start.json", json.dumps({**asdict(start), **said}))


def read_start(checkpoint: str) -> Start | None:
    """Where a checkpoint begins; None where that is the topic's first record."""
    text = read_text(f"{checkpoint}.start.json")
    if text is None:
        return None
    kept = json.loads(text)
    return Start(
        held={int(partition): at for partition, at in kept["held"].items()},
        offsets={int(partition): at for partition, at in kept["offsets"].items()},
        lost=tuple(OffsetRange(**one) for one in kept["lost"]),
    )


def starting_offsets(facts: TopicFacts, start: Start | None) -> str:
    """What Spark's Kafka source is told; it looks at this only while a checkpoint is empty."""
    if start is None:
        return "earliest"
    offsets = {str(one): start.offsets.get(one, _EARLIEST) for one in sorted(facts.first)}
    return json.dumps({facts.topic: offsets})


def write_identity(checkpoint: str, facts: TopicFacts) -> None:
    """Keep which topic is read: one that is created again has another id."""
    kept = {"topic": facts.topic, "id": facts.topic_id}
    write_text(_identity_file(checkpoint), json.dumps(kept))


def known_id(checkpoint: str) -> str | None:
    """The identity of the topic that is read; None before the first read."""
    text = read_text(_identity_file(checkpoint))
    return None if text is None else str(json.loads(text)["id"])


def _identity_file(checkpoint: str) -> str:
    return f"{checkpoint}.topic.json"

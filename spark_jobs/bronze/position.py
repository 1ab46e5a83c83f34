"""Where to resume reading a topic, according to the bronze table and not to a checkpoint.

A commit of a bronze table has all records of a batch's offsets. So the highest offset of each
partition is the position to resume from, and a stream with a lost or damaged checkpoint can start a
new one there. A person decides that: files next to the new checkpoint record who, why, and which
records were skipped.
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

# Spark's symbol for the earliest offset of a partition.
_EARLIEST = -2


@dataclass(frozen=True)
class Start:
    """The start of a new checkpoint.

    Attributes:
        held: next offset by the bronze table, by partition; checked again at the start.
        offsets: offset to start with, by partition. Other partitions are read from their first
            record.
        lost: offsets in between whose records Kafka has deleted.
    """

    held: Mapping[int, int]
    offsets: Mapping[int, int]
    lost: tuple[OffsetRange, ...]


def next_offsets(table: str) -> dict[int, int]:
    """The offset after the last one in a bronze table, by partition.

    Raises:
        TableMissingError: the bronze table does not exist.
    """
    rows = read_columns(table, [BronzeColumn.PARTITION, BronzeColumn.OFFSET])
    highest = rows.group_by(BronzeColumn.PARTITION).aggregate([(BronzeColumn.OFFSET, "max")])
    after = pc.add(highest.column(f"{BronzeColumn.OFFSET}_max"), 1)
    partitions = highest.column(BronzeColumn.PARTITION).to_pylist()
    return dict(zip(partitions, after.to_pylist(), strict=True))


def start_after(held: Mapping[int, int], facts: TopicFacts) -> Start:
    """The start of a new checkpoint after the records of the bronze table.

    Args:
        held: next offset by the bronze table, by partition.
        facts: the topic's current state.
    """
    first = {partition: facts.first.get(partition, at) for partition, at in held.items()}
    lost = tuple(
        OffsetRange(partition, at, first[partition])
        for partition, at in sorted(held.items())
        if first[partition] > at
    )
    return Start(held, {one: max(at, first[one]) for one, at in held.items()}, lost)


def write_start(checkpoint: str, start: Start, *, by: str, reason: str, at: str) -> None:
    """Store where a checkpoint starts, and who decided it, why and when."""
    said = {"by": by, "reason": reason, "at": at}
    write_text(f"{checkpoint}.start.json", json.dumps({**asdict(start), **said}))


def read_start(checkpoint: str) -> Start | None:
    """Where a checkpoint starts; None for the topic's first record, or if the file is torn."""
    text = read_text(f"{checkpoint}.start.json")
    if text is None:
        return None
    try:
        kept = json.loads(text)
        return Start(
            held={int(partition): at for partition, at in kept["held"].items()},
            offsets={int(partition): at for partition, at in kept["offsets"].items()},
            lost=tuple(OffsetRange(**one) for one in kept["lost"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def starting_offsets(facts: TopicFacts, start: Start | None) -> str:
    """Spark's option ``startingOffsets``; used only while the checkpoint is empty."""
    if start is None:
        return "earliest"
    offsets = {str(one): start.offsets.get(one, _EARLIEST) for one in sorted(facts.first)}
    return json.dumps({facts.topic: offsets})


def write_identity(checkpoint: str, facts: TopicFacts) -> None:
    """Store the id of the topic; a recreated topic has another one."""
    kept = {"topic": facts.topic, "id": facts.topic_id}
    write_text(identity_file(checkpoint), json.dumps(kept))


def known_id(checkpoint: str) -> str | None:
    """The id of the topic that is read; None before the first read, or if the file is torn."""
    text = read_text(identity_file(checkpoint))
    return None if text is None else _id_in(text)


def identity_torn(checkpoint: str) -> bool:
    """Whether there is a file with the id of the topic that does not name one."""
    text = read_text(identity_file(checkpoint))
    return text is not None and _id_in(text) is None


def _id_in(text: str) -> str | None:
    try:
        return str(json.loads(text)["id"])
    except (ValueError, TypeError, KeyError):
        return None


def identity_file(checkpoint: str) -> str:
    """Where the id of a checkpoint's topic is stored."""
    return f"{checkpoint}.topic.json"

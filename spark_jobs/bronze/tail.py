"""Checks that a topic and its bronze table both have the records that were read last.

A topic can lose its tail and keep its id: an incomplete replica becomes leader, or a disk is
restored. After it has grown past the old offset, offsets look fine. So the last records of bronze
are compared with the topic's records at the same offsets. The table can lose its tail, too, if it
alone is restored from a backup: then the topic has records that the checkpoint says were read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.errors import TopicTruncatedError
from spark_jobs.bronze.reconcile import consumed
from spark_jobs.bronze.topics import TopicFacts
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.last_records import LOOKED_BACK, near
from spark_jobs.storage.reader import read_columns

_COLUMNS = (
    BronzeColumn.PARTITION,
    BronzeColumn.OFFSET,
    BronzeColumn.TIMESTAMP,
    BronzeColumn.KEY,
    BronzeColumn.VALUE,
)


@dataclass(frozen=True)
class Record:
    """What distinguishes records at the same offset.

    Attributes:
        at: timestamp in milliseconds since 1970; None if the broker has none.
        content: key and value; None if they were forgotten.
    """

    at: int | None
    content: tuple[bytes | None, bytes | None] | None


@dataclass(frozen=True)
class Landed:
    """A record in bronze and its offset."""

    offset: int
    record: Record


def check_tail(
    facts: TopicFacts,
    *,
    read_to: Mapping[int, int],
    landed: Mapping[int, Landed],
    held: Callable[[Mapping[int, range]], Mapping[int, Mapping[int, Record]]],
) -> dict[int, int]:
    """Fail if a topic lost records that bronze had read.

    Args:
        facts: the topic's current state.
        read_to: the next offset to read, by partition.
        landed: the last record of each partition in bronze, as from ``last_landed``.
        held: returns the topic's records at some offsets, by partition and offset.

    Returns:
        the first record that was read and is not in bronze, by partition; only of those shortly
        before the next offset.

    Raises:
        TopicTruncatedError: the topic ends before, or has other records.
    """
    short = {part: facts.end[part] for part, to in read_to.items() if facts.end.get(part, to) < to}
    if short:
        raise TopicTruncatedError(facts.topic, read_to=read_to, ends=short)
    asked = {}
    for part, to in read_to.items():
        since = landed[part].offset if part in landed else to - LOOKED_BACK
        offsets = range(max(since, facts.first.get(part, to)), to)
        if offsets:
            asked[part] = offsets
    found = held(asked)
    other = {
        part: one.offset
        for part, one in landed.items()
        if differ(one.record, found.get(part, {}).get(one.offset))
    }
    if other:
        raise TopicTruncatedError(facts.topic, read_to=read_to, other=other)
    lacking = {}
    for part, records in found.items():
        after = landed[part].offset if part in landed else -1
        if later := [at for at in records if at > after]:
            lacking[part] = min(later)
    return lacking


def differ(landed: Record, held: Record | None) -> bool:
    """Whether the topic has another record at the offset; a missing record does not count.

    >>> first = Record(5, (b"k", b"v"))
    >>> differ(first, Record(6, (b"k", b"v"))), differ(first, None), differ(first, first)
    (True, False, False)
    """
    if held is None:
        return False
    if landed.content is not None and landed.content != held.content:
        return True
    return None not in {landed.at, held.at} and landed.at != held.at


def last_landed(location: str, read_to: Mapping[int, int]) -> dict[int, Landed]:
    """The last record of each partition in bronze, among those shortly before an offset.

    Args:
        location: of the bronze table.
        read_to: the next offset to read, by partition.

    Returns:
        records by partition; partitions without one are left out.

    Raises:
        TableMissingError: the bronze table does not exist.
    """
    where = near(read_to)
    if where is None:
        return {}
    rows = read_columns(location, _COLUMNS, where=where)
    # As numbers: a producer's clock may be beyond the year 9999, where Python's times end.
    moments = rows.column(BronzeColumn.TIMESTAMP).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows = rows.set_column(_COLUMNS.index(BronzeColumn.TIMESTAMP), BronzeColumn.TIMESTAMP, moments)
    found: dict[int, Landed] = {}
    for part, at, moment, key, value in zip(*(rows.column(name) for name in _COLUMNS), strict=True):
        if part.as_py() not in found or at.as_py() > found[part.as_py()].offset:
            record = _record(moment.as_py(), key.as_py(), value.as_py())
            found[part.as_py()] = Landed(at.as_py(), record)
    return found


def held_at(
    facts: TopicFacts, access: KafkaAccess, offsets: Mapping[int, range]
) -> dict[int, dict[int, Record]]:
    """A topic's records at some offsets.

    Args:
        facts: the topic's current state.
        access: login to the brokers.
        offsets: by partition.

    Returns:
        records by partition and offset; offsets without a record are left out.

    Raises:
        KafkaUnreachableError: the broker stops answering.
    """
    if not offsets:
        return {}
    part_of_it = replace(
        facts,
        first={part: one.start for part, one in offsets.items()},
        end={part: one.stop for part, one in offsets.items()},
    )
    found: dict[int, dict[int, Record]] = {part: {} for part in offsets}
    for message in consumed(access, part_of_it):
        kind, at = message.timestamp()
        moment = None if kind == TIMESTAMP_NOT_AVAILABLE else at
        record = Record(moment, (message.key(), message.value()))
        found[message.partition()][message.offset()] = record
    return found


def _record(micros: int | None, key: bytes | None, value: bytes | None) -> Record:
    moment = None if micros is None else micros // 1000
    forgotten = key is None and value is None
    return Record(moment, None if forgotten else (key, value))

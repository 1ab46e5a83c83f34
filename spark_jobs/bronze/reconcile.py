"""Compares Kafka with bronze: bronze has each record that a consumer sees exactly once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow.compute as pc
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.errors import OffsetRange, failure
from spark_jobs.bronze.topics import TopicFacts, Topics
from spark_jobs.names import BronzeColumn
from spark_jobs.storage.reader import read_columns

POLL_SECONDS = 15
# Offsets by partition.
Offsets = Mapping[int, set[int]]


@dataclass(frozen=True)
class BronzeBalance:
    """The result of comparing a topic with its bronze table.

    Attributes:
        kafka: number of records in the topic.
        bronze: number of rows in the bronze table.
        expired: rows of bronze whose records Kafka has deleted.
        compacted: rows of bronze whose records Kafka has replaced by later ones of their keys.
        lag: records at the ends of partitions that bronze has not read.
        problems: differences, as sentences.
    """

    topic: str
    kafka: int
    bronze: int
    expired: int
    compacted: int
    lag: int
    problems: tuple[str, ...]


def reconcile_bronze(topics: Topics, topic: str, *, location: str) -> BronzeBalance:
    """Compare a topic with its bronze table.

    Raises:
        TopicMissingError: the topic does not exist.
        KafkaUnreachableError: no broker answers.
        TableMissingError: the bronze table does not exist.
    """
    facts = topics.facts(topic)
    held = bronze_offsets(location)
    seen = consumed_offsets(topics.access, facts)
    # Reading a topic takes a while, in which its retention may delete records.
    facts = replace(facts, first=topics.facts(topic).first)
    return compare(facts, seen, held, compacted=lambda asked: compacted_away(location, asked))


def compare(
    facts: TopicFacts,
    kafka: Mapping[int, set[int]],
    bronze: Mapping[int, list[int]],
    *,
    compacted: Callable[[Offsets], Offsets] = lambda _: {},
) -> BronzeBalance:
    """Compare the offsets that a consumer saw with those in bronze, by partition.

    Args:
        facts: the topic's state when the consumer started; its first offsets when it ended.
        kafka: the offsets that the consumer saw.
        bronze: offsets in bronze, with duplicates; read before the consumer started.
        compacted: returns those of some offsets whose records a compaction may have removed.
    """
    problems: list[str] = []
    lag = expired = gone = 0
    for partition in sorted(facts.first.keys() | bronze.keys()):
        rows, seen = bronze.get(partition, []), kafka.get(partition, set())
        distinct = set(rows)
        if len(rows) != len(distinct):
            twice = len(rows) - len(distinct)
            problems.append(f"partition {partition}: {twice} rows of bronze repeat an offset")
        first, end = facts.first.get(partition, 0), facts.end.get(partition, 0)
        within = {offset for offset in distinct if offset >= first}
        expired += len(distinct) - len(within)
        last = max(distinct, default=-1)
        lag += sum(1 for offset in seen if offset > last)
        lost = [offset for offset in seen - distinct if offset < last]
        alien = {offset for offset in within - seen if offset < end}
        replaced = compacted({partition: alien}).get(partition, set()) if alien else set()
        gone += len(replaced)
        problems += _problems_of(partition, lost, "in Kafka and not in bronze")
        problems += _problems_of(partition, alien - replaced, "in bronze and not in Kafka")
    return BronzeBalance(
        topic=facts.topic,
        kafka=sum(map(len, kafka.values())),
        bronze=sum(map(len, bronze.values())),
        expired=expired,
        compacted=gone,
        lag=lag,
        problems=tuple(problems),
    )


def bronze_offsets(location: str, version: int | None = None) -> dict[int, list[int]]:
    """The offsets of a bronze table's rows, by partition.

    Raises:
        TableMissingError: the table does not exist.
    """
    table = read_columns(location, [BronzeColumn.PARTITION, BronzeColumn.OFFSET], version)
    found: dict[int, list[int]] = {}
    partitions = table.column(BronzeColumn.PARTITION).to_pylist()
    offsets = table.column(BronzeColumn.OFFSET).to_pylist()
    for partition, offset in zip(partitions, offsets, strict=True):
        found.setdefault(partition, []).append(offset)
    return found


def compacted_away(location: str, offsets: Offsets) -> dict[int, set[int]]:
    """Those offsets of a bronze table whose records a compaction of the topic may have removed.

    It removes a record if a later one has its key, and in the end deletes too. Of a record that was
    forgotten bronze has no key.

    Args:
        location: of the bronze table.
        offsets: by partition.

    Raises:
        TableMissingError: the table does not exist.
    """
    found: dict[int, set[int]] = {}
    for partition, asked in offsets.items():
        here = pc.field(BronzeColumn.PARTITION) == partition
        rows = read_columns(location, [BronzeColumn.KEY, BronzeColumn.OFFSET], where=here)
        last = rows.group_by(BronzeColumn.KEY).aggregate([(BronzeColumn.OFFSET, "max")])
        last = last.filter(pc.field(BronzeColumn.KEY).is_valid())
        keyless = rows.filter(pc.field(BronzeColumn.KEY).is_null())
        empty = here & pc.field(BronzeColumn.VALUE).is_null()
        deletes = read_columns(location, [BronzeColumn.OFFSET], where=empty)
        stays = set(last.column(f"{BronzeColumn.OFFSET}_max").to_pylist())
        stays |= set(keyless.column(BronzeColumn.OFFSET).to_pylist())
        stays -= set(deletes.column(BronzeColumn.OFFSET).to_pylist())
        found[partition] = asked - stays
    return found


def consumed_offsets(access: KafkaAccess, facts: TopicFacts) -> dict[int, set[int]]:
    """The offsets of all committed records of a topic, up to the given ends, by partition.

    Raises:
        KafkaUnreachableError: the broker stops answering.
    """
    found: dict[int, set[int]] = {partition: set() for partition in facts.first}
    for message in consumed(access, facts):
        found[message.partition()].add(message.offset())
    return found


def consumed(access: KafkaAccess, facts: TopicFacts) -> Iterator[Message]:
    """All committed records of a topic, up to the given ends.

    Raises:
        KafkaUnreachableError: the broker stops answering.
    """
    consumer = Consumer(
        {
            **access.librdkafka(),
            "group.id": "tidemark-reconcile",
            "enable.auto.commit": False,
            # If records expire meanwhile, go on with the first one that is left.
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    open_ones = {part for part, first in facts.first.items() if facts.end[part] > first}
    try:
        consumer.assign(
            [TopicPartition(facts.topic, part, facts.first[part]) for part in open_ones]
        )
        while open_ones:
            message = consumer.poll(POLL_SECONDS)
            if message is None:
                raise failure(access, KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001
            partition, offset, error = message.partition(), message.offset(), message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
                raise failure(access, error)
            if error is not None or offset >= facts.end[partition]:
                open_ones.discard(partition)
            else:
                yield message
                if offset + 1 == facts.end[partition]:
                    open_ones.discard(partition)
    except KafkaException as error:
        raise failure(access, error.args[0]) from error
    finally:
        consumer.close()


def ranges(partition: int, offsets: Iterable[int]) -> list[OffsetRange]:
    """Group offsets into ranges.

    >>> [str(run) for run in ranges(0, [5, 3, 4, 9])]
    ['partition 0: 3 to 5', 'partition 0: 9 to 9']
    """
    runs = []
    numbered = enumerate(sorted(offsets))
    for _, group in itertools.groupby(numbered, key=lambda pair: pair[1] - pair[0]):
        run = [offset for _, offset in group]
        runs.append(OffsetRange(partition, run[0], run[-1] + 1))
    return runs


def _problems_of(partition: int, offsets: Collection[int], what: str) -> list[str]:
    if not offsets:
        return []
    shown = ranges(partition, offsets)
    more = f" and {len(shown) - 5} more runs" if len(shown) > 5 else ""
    return [f"{len(offsets)} records {what}: {'; '.join(map(str, shown[:5]))}{more}"]

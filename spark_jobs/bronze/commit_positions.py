"""Reads up to which commit each database's changes are in Kafka, from the connectors' offsets.

Kafka Connect stores an offset only when the brokers have acknowledged all records before it, and
Debezium's offset names the last finished transaction. So the topics have all changes up to a stored
transaction. Before the first transaction the offset names the position of the snapshot, once all
its rows are in Kafka.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.errors import failure
from spark_jobs.state.frontiers import AfterSnapshot

ANSWER_SECONDS = 10.0
POLLED = 500
# A consumer group without members: partitions are assigned, and offsets are not committed.
GROUP = "tidemark-reconcile"


@dataclass
class CommitPositions:
    """Reads the topic of Kafka Connect's offsets; not thread-safe."""

    access: KafkaAccess
    topic: str
    _consumer: Consumer | None = None
    _found: dict[str, int] = field(default_factory=dict)

    def newest(self) -> dict[str, int]:
        """The end of the last transaction whose changes are all in Kafka, by database.

        Returns:
            log positions by topic prefix; without databases whose first snapshot is still being
                read.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker rejects the login or the request.
        """
        try:
            consumer = self._consumer or self._open()
            while messages := consumer.consume(POLLED, timeout=0.05):
                for message in messages:
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    stored = stored_position(message.key(), message.value())
                    if stored is not None:
                        self._found[stored[0]] = stored[1]
        except KafkaException as error:
            self.close()
            raise failure(self.access, error.args[0]) from error
        return dict(self._found)

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer = None

    def _open(self) -> Consumer:
        options = {"group.id": GROUP, "enable.auto.commit": False}
        self._consumer = consumer = Consumer({**self.access.librdkafka(), **options})
        known = consumer.list_topics(self.topic, timeout=ANSWER_SECONDS).topics[self.topic]
        if known.error is not None:
            raise KafkaException(known.error)
        consumer.assign(
            [TopicPartition(self.topic, one, OFFSET_BEGINNING) for one in known.partitions]
        )
        return consumer


def stored_position(key: bytes | None, value: bytes | None) -> tuple[str, int] | None:
    """Database and position in a stored offset; None if it has none.

    >>> key = b'["shop",{"server":"shop"}]'
    >>> stored_position(key, b'{"lsn_commit": 42, "lsn": 50}')
    ('shop', 42)
    >>> stored_position(key, b'{"lsn": 50, "snapshot": "INITIAL"}') is None
    True
    >>> stored_position(key, b'{"lsn": 50}')
    ('shop', 51)
    """
    if not key or not value:
        return None
    try:
        (_, partition), offset = json.loads(key), json.loads(value)
    except (ValueError, TypeError):
        return None
    if not isinstance(partition, dict) or not isinstance(offset, dict):
        return None
    return _position(partition.get("server"), offset)


def _position(server: Any, offset: dict[str, Any]) -> tuple[str, int] | None:
    # During a snapshot the tables have only some of their rows.
    if not isinstance(server, str) or "snapshot" in offset:
        return None
    position = offset.get("lsn_commit")
    if position is None and "lsn_proc" not in offset and isinstance(offset.get("lsn"), int):
        # No commit since the snapshot, whose rows have this very position.
        position = AfterSnapshot(offset["lsn"] + 1)
    return (server, position) if isinstance(position, int) else None

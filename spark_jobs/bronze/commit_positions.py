"""Up to which commit of each database all changes are in Kafka, by what the connectors stored.

Kafka Connect stores a connector's offset only when the broker has acknowledged every record that
came before. Debezium's offset names the last transaction that had ended. So once it is stored, the
topics hold every change of that transaction and of all before it. Before the first transaction it
names the position of the snapshot, as soon as every row of that is in Kafka.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.errors import failure

ANSWER_SECONDS = 10.0
POLLED = 500
# The group has no members: partitions are assigned, and no offset is stored.
GROUP = "tidemark-reconcile"


@dataclass
class CommitPositions:
    """Reads the topic in which Kafka Connect stores its connectors' offsets; for one thread."""

    access: KafkaAccess
    topic: str
    _consumer: Consumer | None = None
    _found: dict[str, int] = field(default_factory=dict)

    def newest(self) -> dict[str, int]:
        """The end of the last transaction whose changes are all in Kafka, by database.

        Returns:
            positions in the database's log, by the prefix of the connector's topics; nothing of a
            database whose first snapshot is being read.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker refuses the login or the request.
        """
        try:
            consumer = self._consumer or self._open()
            while messages := consumer.consume(POLLED, timeout=0.05):
                for message in messages:
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    told = position_told(message.key(), message.value())
                    if told is not None:
                        self._found[told[0]] = told[1]
        except KafkaException as error:
            self.close()
            raise failure(self.access, error.args[0]) from error
        return dict(self._found)

    def close(self) -> None:
        """Close the connection; the next question opens another."""
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


def position_told(key: bytes | None, value: bytes | None) -> tuple[str, int] | None:
    """The database and the position that one stored offset tells; None where it tells none.

    >>> key = b'["shop",{"server":"shop"}]'
    >>> position_told(key, b'{"lsn_commit": 42, "lsn": 50}')
    ('shop', 42)
    >>> position_told(key, b'{"lsn": 50, "snapshot": "INITIAL"}') is None
    True
    >>> position_told(key, b'{"lsn": 50}')
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
    return _told(partition.get("server"), offset)


def _told(server: Any, offset: dict[str, Any]) -> tuple[str, int] | None:
    # While a snapshot is read, the tables hold a part of their rows.
    if not isinstance(server, str) or "snapshot" in offset:
        return None
    position = offset.get("lsn_commit")
    if position is None and "lsn_proc" not in offset and isinstance(offset.get("lsn"), int):
        # Nothing was committed since the snapshot, whose rows stand at this very position.
        position = offset["lsn"] + 1
    return (server, position) if isinstance(position, int) else None

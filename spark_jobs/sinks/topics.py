"""Topics of a broker: list, create, and read to the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaError, NewTopic

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.sinks.messages import Message

ANSWER_SECONDS = 10.0
# Error codes of the client itself begin with an underscore.
CLIENT_FENCED, _TIMED_OUT, _PARTITION_EOF = (
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._PARTITION_EOF,  # noqa: SLF001
)


@dataclass(frozen=True)
class Topics:
    """Each call may raise ``KafkaException``: the broker does not answer, or rejects it.

    Attributes:
        group: group id for reading topics; no offsets are committed.
    """

    access: KafkaAccess
    group: str

    def names(self) -> set[str]:
        """The existing topics."""
        return set(self._admin().list_topics(timeout=ANSWER_SECONDS).topics)

    def make(self, name: str, config: dict[str, str], *, partitions: int = 1) -> None:
        """Create a topic unless it exists.

        Args:
            name: of the topic.
            config: the topic's options, by Kafka's names.
            partitions: how many; -1: the broker's default.
        """
        admin = self._admin()
        if name in admin.list_topics(timeout=ANSWER_SECONDS).topics:
            return
        topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config)
        try:
            # Await the result: it is delivered only while the client exists.
            admin.create_topics([topic], operation_timeout=ANSWER_SECONDS)[name].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def records(self, topic: str) -> Iterator[Message]:
        """All committed records of a topic, in order per key; none if it does not exist."""
        consumer = Consumer(
            {
                **self.access.librdkafka(),
                "group.id": self.group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
            }
        )
        try:
            known = consumer.list_topics(timeout=ANSWER_SECONDS).topics
            if topic not in known:
                return
            open_ends = set(known[topic].partitions)
            consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in open_ends])
            while open_ends:
                record = consumer.poll(ANSWER_SECONDS)
                if record is None:
                    raise KafkaException(KafkaError(_TIMED_OUT))
                error = record.error()
                if error is None:
                    yield _message(record)
                elif error.code() == _PARTITION_EOF:
                    open_ends.discard(record.partition())
                else:
                    raise KafkaException(error)
        finally:
            consumer.close()

    def _admin(self) -> AdminClient:
        return AdminClient(self.access.librdkafka())


def _message(record: Any) -> Message:
    return Message.decoded(record.key(), record.value())

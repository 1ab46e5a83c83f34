"""The topics of a broker: which there are, making one, and reading one to its end."""

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
# The client's own conditions begin with an underscore.
CLIENT_FENCED, _TIMED_OUT, _PARTITION_EOF = (
    KafkaError._FENCED,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._PARTITION_EOF,  # noqa: SLF001
)


@dataclass(frozen=True)
class Topics:
    """Every call may raise ``KafkaException``: the broker does not answer, or refuses.

    Attributes:
        group: the name under which topics are read; nothing is recorded for it.
    """

    access: KafkaAccess
    group: str

    def names(self) -> set[str]:
        """The topics that there are."""
        return set(self._admin().list_topics(timeout=ANSWER_SECONDS).topics)

    def make(self, name: str, config: dict[str, str], *, partitions: int = 1) -> None:
        """Make a topic, unless there is one; -1 leaves the number of partitions to the broker."""
        admin = self._admin()
        if name in admin.list_topics(timeout=ANSWER_SECONDS).topics:
            return
        topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=config)
        try:
            # The answer comes to the client that asked, as long as somebody holds it.
            admin.create_topics([topic], operation_timeout=ANSWER_SECONDS)[name].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise

    def records(self, topic: str) -> Iterator[Message]:
        """Every committed record of a topic, those of a key in their order; none without one."""
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
    key, value = record.key(), record.value()
    return Message((key or b"").decode(), None if value is None else value.decode())

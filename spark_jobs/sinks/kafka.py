"""A sink's Kafka topic: records and watermark of a delivery are one Kafka transaction.

Consumers with ``isolation.level=read_committed`` see each change once. The watermarks of all sinks
are in one compacted topic. Opening a sink fences the process that had it open before.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer
from confluent_kafka.cimpl import KafkaError

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.definitions.vocabulary import KafkaFormat
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.errors import (
    SinkMovedError,
    SinkUnreachableError,
    SinkValueError,
)
from spark_jobs.sinks.messages import Message, fold, messages
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.target import Watermark
from spark_jobs.sinks.topics import ANSWER_SECONDS, CLIENT_FENCED, Topics
from spark_jobs.state.failpoints import failpoint

MARKS = "_tidemark_sinks"
# Prefix of the transactional and group ids of a sink's clients.
CLIENT_PREFIX = "tidemark-sink-"
COMMIT_SECONDS = 120.0
# A dead process's transaction is aborted by the sink's next one, or after this timeout.
TRANSACTION_SECONDS = 300
_FENCED = {CLIENT_FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED}
_REFUSED = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_RECORD,
    KafkaError.POLICY_VIOLATION,
    # A name that the broker does not take: "a.b" beside "a_b", for example.
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.INVALID_CONFIG,
}


@dataclass
class KafkaTarget:
    """A sink's topic."""

    sink: SinkEntry
    codec: RowCodec
    access: KafkaAccess
    _producer: Producer | None = None
    _mark: Watermark | None = None

    def watermark(self) -> Watermark | None:
        with self._translated_errors():
            self._open()
            return self._mark

    def occupied(self) -> bool:
        with self._translated_errors():
            return next(self._topics.records(self.sink.target), None) is not None

    def missing(self) -> bool:
        with self._translated_errors():
            return self.sink.target not in self._topics.names()

    def prepare(self) -> None:
        with self._translated_errors():
            keep = "delete" if self._form is KafkaFormat.CHANGELOG else "compact"
            self._topics.make(
                self.sink.target, {"cleanup.policy": keep, "retention.ms": "-1"}, partitions=-1
            )

    def rows(self) -> Iterator[tuple[str, str]]:
        with self._translated_errors():
            yield from fold(self._topics.records(self.sink.target), self._form).items()

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        with self._translated_errors():
            producer = self._open()
            if self._mark != before:
                raise SinkMovedError(self.sink.name)
            self._topics.make(MARKS, {"cleanup.policy": "compact", "segment.bytes": "1048576"})
            with _transaction(producer):
                count = 0
                for change in changes:
                    count += 1
                    for one in self._messages(change, after.version):
                        _send(producer, self.sink.target, one)
                _send(producer, MARKS, Message(self.sink.name, json.dumps(after.parts)))
                # All records are with the broker, in an uncommitted transaction.
                producer.flush(COMMIT_SECONDS)
                failpoint("sink_delivered")
            self._mark = after
            return count

    def close(self) -> None:
        # No commit: the broker aborts an open transaction when the sink is opened again.
        self._producer = None
        self._mark = None

    @property
    def _topics(self) -> Topics:
        return Topics(self.access, group=f"{CLIENT_PREFIX}{self.sink.name}")

    @property
    def _form(self) -> KafkaFormat:
        return KafkaFormat(str(self.sink.format))

    def _open(self) -> Producer:
        if self._producer is None:
            # Check first, because a producer waits long for a missing broker.
            self._topics.names()
            producer = Producer(
                {
                    **self.access.librdkafka(),
                    "transactional.id": f"{CLIENT_PREFIX}{self.sink.name}",
                    "transaction.timeout.ms": TRANSACTION_SECONDS * 1000,
                    "enable.idempotence": True,
                    # The partitioner of Java clients, so that both use the same partition for a
                    # key.
                    "partitioner": "murmur2_random",
                    "linger.ms": 5,
                }
            )
            producer.init_transactions(ANSWER_SECONDS)
            self._producer = producer
            self._mark = self._stored()
        return self._producer

    def _messages(self, change: Change, version: int) -> Iterator[Message]:
        now, table = int(time.time() * 1000), self.sink.table_name
        return messages(change, self._form, table=table, version=version, at_ms=now)

    def _stored(self) -> Watermark | None:
        found = None
        for record in self._topics.records(MARKS):
            if record.key == self.sink.name and record.value is not None:
                found = Watermark.stored(**json.loads(record.value))
        return found

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """After a failure close the producer, and raise one of our errors."""
        name = self.sink.name
        try:
            yield
        except KafkaException as error:
            self.close()
            cause = error.args[0]
            if cause.code() in _FENCED:
                raise SinkMovedError(name) from error
            if cause.code() in _REFUSED:
                raise SinkValueError(name, cause.str()) from error
            if refused := self.access.refusal(cause.name(), cause.str()):
                raise refused from error
            raise SinkUnreachableError(name, "Kafka", cause.str()) from error
        except BaseException:
            self.close()
            raise


@contextmanager
def _transaction(producer: Producer) -> Iterator[None]:
    """Commit what is sent in the context, or abort."""
    producer.begin_transaction()
    try:
        yield
        producer.commit_transaction(COMMIT_SECONDS)
    except BaseException:
        # Consumers of committed records wait for the end of each transaction.
        with suppress(KafkaException):
            producer.abort_transaction(ANSWER_SECONDS)
        raise


def _send(producer: Producer, topic: str, message: Message) -> None:
    key, value = message.encoded()
    while True:
        try:
            producer.produce(topic, key=key, value=value)
            break
        except BufferError:
            producer.poll(0.5)
    producer.poll(0)

"""Sends records to Kafka, without duplicates by the producer or silent loss."""

from __future__ import annotations

from contextlib import AbstractContextManager

from confluent_kafka import KafkaError, Message, Producer

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.demo.errors import RecordsNotDeliveredError
from spark_jobs.demo.operations import Record

FLUSH_SECONDS = 120


class RecordSender(AbstractContextManager["RecordSender"]):
    """An idempotent producer that counts what was not acknowledged.

    It waits for a broker that restarts: the producer buffers records for five minutes.
    """

    def __init__(self, access: KafkaAccess) -> None:
        self._failures = 0
        self._first_reason = "no acknowledgement in time"
        self._producer = Producer(
            {
                **access.librdkafka(),
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 20,
                "message.max.bytes": 1_040_000,
                "message.timeout.ms": 300_000,
            }
        )

    def send(self, record: Record) -> None:
        """Enqueue a record; the acknowledgement comes later."""
        while True:
            try:
                self._producer.produce(
                    record.topic, record.value, record.key, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.5)
            else:
                self._producer.poll(0)
                return

    def finish(self) -> None:
        """Wait for every acknowledgement.

        Raises:
            RecordsNotDeliveredError: some are missing.
        """
        missing = self._producer.flush(FLUSH_SECONDS) + self._failures
        if missing:
            raise RecordsNotDeliveredError(missing, self._first_reason)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            if not self._failures:
                self._first_reason = str(error).rstrip(".")
            self._failures += 1

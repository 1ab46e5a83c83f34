"""Counting records in Kafka by reading them, independently of Spark."""

from __future__ import annotations

import time
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, TopicPartition

from spark_jobs.bronze.errors import KafkaUnreachableError, OffsetRange

POLL_SECONDS = 1.0
LIMIT_SECONDS = 60.0


def count_records(topic: str, offsets: OffsetRange, *, servers: str) -> int:
    """How many committed records a range of offsets holds.

    Offsets are no count: markers of transactions and compaction leave holes.

    Raises:
        KafkaUnreachableError: the broker did not answer in time.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"tidemark-reconcile-{uuid4().hex}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, offsets.partition, offsets.start)])
        return _count(consumer, offsets, servers=servers)
    finally:
        consumer.close()


def _count(consumer: Consumer, offsets: OffsetRange, *, servers: str) -> int:
    found = 0
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        record = consumer.poll(POLL_SECONDS)
        if record is None:
            continue
        if record.error():
            if record.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                return found
            raise KafkaUnreachableError(servers, str(record.error()))
        if (record.offset() or 0) >= offsets.end:
            return found
        found += 1
        if record.offset() == offsets.end - 1:
            return found
    raise KafkaUnreachableError(servers, f"No answer within {LIMIT_SECONDS:.0f} seconds")

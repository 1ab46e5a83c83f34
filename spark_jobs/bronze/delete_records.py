"""Writes records into a source's topic on a person's request, such as missed deletes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.errors import failure

# Headers of such a record: who wrote it, and why.
DELETED_BY, DELETED_WHY = "tidemark.told_by", "tidemark.told_why"
_FLUSH_SECONDS = 30.0
_MOST_IN_FLIGHT = 10_000


def produce(
    access: KafkaAccess,
    topic: str,
    records: Iterable[tuple[int, bytes, bytes | None]],
    *,
    headers: Mapping[str, str],
) -> int:
    """Write records, and wait until the brokers have acknowledged them.

    Args:
        access: login to the brokers.
        topic: the source's topic.
        records: partition, key and value of each.
        headers: headers of all records.

    Returns:
        number of records written.

    Raises:
        KafkaUnreachableError: no broker answers.
        LakehouseError: the broker rejects the login or the request, or its certificate is not
            trusted.
    """
    refused: list[KafkaError] = []

    def heard(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refused.append(error)

    said: list[tuple[str, str | bytes | None]] = [
        (name, text.encode()) for name, text in headers.items()
    ]
    number = 0
    try:
        producer = Producer({**access.librdkafka(), "enable.idempotence": True, "acks": "all"})
        for partition, key, value in records:
            while len(producer) > _MOST_IN_FLIGHT:
                producer.poll(1)
            producer.produce(
                topic, value, key, partition=partition, headers=said, on_delivery=heard
            )
            number += 1
        left = producer.flush(_FLUSH_SECONDS)
    except KafkaException as error:
        raise failure(access, error.args[0]) from error
    if refused or left:
        timed_out = KafkaError(KafkaError._TIMED_OUT)  # noqa: SLF001
        raise failure(access, refused[0] if refused else timed_out)
    return number

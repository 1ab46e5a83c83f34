"""Events for the benchmark's topic: a number of them, or at a rate."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from benchmarks.streams.project import TOPIC
from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.demo.kafka import RecordSender
from spark_jobs.demo.operations import Record, Trait

EVENT_BYTES = 200
_TICK_SECONDS = 0.02


def event(number: int, time_text: str) -> bytes:
    """One event as JSON of ``EVENT_BYTES`` bytes.

    >>> len(event(7, "2026-01-02T03:04:05.678Z"))
    200
    """
    head = (
        f'{{"event_id":"{number:016x}","user_id":{number % 10_007},'
        f'"amount":{number % 1_000}.25,"event_time":"{time_text}","note":"'
    )
    return f'{head:x<{EVENT_BYTES - 2}}"}}'.encode()


def send_all(servers: str, count: int) -> None:
    """Send a number of events as fast as the broker accepts them.

    Raises:
        RecordsNotDeliveredError: the broker did not acknowledge everything.
    """
    with RecordSender(KafkaAccess(servers)) as sender:
        now = _now()
        for number in range(count):
            if number % 1_000 == 0:
                now = _now()
            sender.send(_record(number, now))


def send_at(servers: str, *, rate: int, seconds: float, first: int = 0) -> int:
    """Send events at a rate, each with the time at which it is sent; returns their number.

    A slow machine sends fewer in that time.

    Args:
        servers: Kafka's bootstrap servers.
        rate: events a second.
        seconds: how long.
        first: the number of the first event; numbers sent before are duplicates.

    Raises:
        RecordsNotDeliveredError: the broker did not acknowledge everything.
    """
    sent, began = 0, time.monotonic()
    with RecordSender(KafkaAccess(servers)) as sender:
        while (passed := time.monotonic() - began) < seconds:
            now = _now()
            # In small batches, so that their timestamps are accurate.
            due = min(int(passed * rate) - sent, max(1, rate // 10))
            for number in range(first + sent, first + sent + due):
                sender.send(_record(number, now))
            sent += due
            time.sleep(_TICK_SECONDS)
    return sent


def _record(number: int, now: str) -> Record:
    return Record(topic=TOPIC, key=None, value=event(number, now), trait=Trait.FRESH)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"

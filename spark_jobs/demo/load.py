"""Executes a plan against the real services, at its rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event
from typing import assert_never

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.demo import database
from spark_jobs.demo.kafka import RecordSender
from spark_jobs.demo.operations import Operation, Record, Transaction
from spark_jobs.demo.plan import LoadRun, plan
from spark_jobs.demo.tally import Tally


@dataclass(frozen=True)
class LoadOrder:
    """The user's parameters: a rate (operations per second), a duration and a seed."""

    rate: float
    seconds: float
    seed: int


def run_load(
    order: LoadOrder,
    *,
    shop_dsn: str,
    kafka: KafkaAccess,
    progress: Callable[[Operation], None] = lambda _: None,
    stop: Event | None = None,
) -> Tally:
    """Generate load on the shop and the topics, and count the operations.

    Args:
        order: rate, duration and seed.
        shop_dsn: the shop's database.
        kafka: the brokers of the events.
        progress: called after each operation.
        stop: ends the run early when it is set.

    Raises:
        ShopUnreachableError: the database does not answer.
        RecordsNotDeliveredError: Kafka did not acknowledge everything.
    """
    stop = stop or Event()
    tally = Tally()
    with database.connect(shop_dsn) as connection, RecordSender(kafka) as sender:
        run = LoadRun(
            order.seed,
            database.next_run(connection),
            datetime.now(UTC),
            order.rate,
            order.seconds,
        )
        started = time.monotonic()
        for operation in plan(run):
            if stop.wait(max(0.0, started + operation.at - time.monotonic())):
                break
            match operation.action:
                case Transaction() as transaction:
                    database.apply(connection, transaction)
                case Record() as record:
                    sender.send(record)
                case other:
                    assert_never(other)
            tally.add(operation)
            progress(operation)
    return tally

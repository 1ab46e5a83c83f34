"""Sinks to a real broker: each format, a process that is killed, a topic that is gone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.definitions.vocabulary import KafkaFormat, SinkSystem
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.errors import SinkGapError, SinkMovedError, SinkOccupiedError
from spark_jobs.sinks.target import Addresses
from spark_jobs.sinks.verify import verify_sink
from spark_jobs.stack.kafka import admin
from spark_jobs.state.failpoints import EXIT_CODE
from tests.e2e import oracle
from tests.e2e.running import RunningStack
from tests.unit.sinks.conftest import SCHEMA, Table, no_spark, rows
from tests.unit.sinks.test_crashes import deliver

Make = Callable[..., Delivery]


def formats(*short: KafkaFormat) -> pytest.MarkDecorator:
    """Parametrizes the format; others than these are in the long tier."""
    forms = [
        pytest.param(one, marks=[] if one in short else [pytest.mark.long]) for one in KafkaFormat
    ]
    return pytest.mark.parametrize("form", forms)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(str(tmp_path / "users"))


@pytest.fixture
def make(broker: RunningStack, table: Table, tmp_path: Path) -> Iterator[Make]:
    """Deliveries from the table to a topic that nobody else has used."""
    topic = f"t{os.urandom(6).hex()}"
    made: list[Delivery] = []

    def delivery(form: KafkaFormat, **changed: Any) -> Delivery:
        entry = {
            "name": f"{topic}_kafka",
            "table": "gold.users",
            "system": SinkSystem.KAFKA,
            "target": topic,
            "keys": ("id",),
            "columns": tuple(SCHEMA.names),
            "format": form,
            "file": "sql/gold/users.sql",
        }
        sink = SinkEntry(**{**entry, **changed})
        # Nobody declares these topics, so no other principal has a right to them.
        where = Addresses(kafka=kafka_access(broker.settings, Principal.ADMIN))
        made.append(Delivery(sink, table.location, lambda: where, tmp_path / "locks", no_spark))
        return made[-1]

    yield delivery
    for one in made:
        one.close()


@formats(KafkaFormat.UPSERT, KafkaFormat.DEBEZIUM)
def test_a_killed_delivery_is_there_once(
    form: KafkaFormat, table: Table, make: Make, broker: RunningStack
) -> None:
    table.create(rows({1: "Ann", 2: "Bob"}))
    sink = make(form)
    for failpoint in ("sink_delivered", "sink_recorded"):
        table.upsert(rows({2: f"Bob at {failpoint}"}))
        assert deliver(sink, failpoint=failpoint) == EXIT_CODE
        sink.catch_up()
        # Another process delivers next; this one would have to notice that it was shut out.
        sink.close()
    table.delete("id = 1")
    sink.catch_up()
    assert verify_sink(sink).passed

    told = [value for _, value in oracle.topic_records(broker.settings, sink.sink.target)]
    insert, update, delete = {
        KafkaFormat.UPSERT: (1, 1, 1),
        KafkaFormat.CHANGELOG: (1, 2, 1),
        KafkaFormat.DEBEZIUM: (1, 1, 2),
    }[form]
    # Two rows, one of them changed again, and one deleted.
    assert len(told) == 2 * insert + update + delete


@formats(KafkaFormat.CHANGELOG)
def test_a_sink_is_rebuilt(
    form: KafkaFormat, table: Table, make: Make, broker: RunningStack
) -> None:
    table.create(rows({1: "Ann", 2: "Bob", None: "nobody"}))
    first = make(form)
    first.catch_up()
    other = make(form, name=f"{first.sink.name}_other")
    with pytest.raises(SinkOccupiedError):
        other.step()
    assert first.rebuild().changes == 0

    table.upsert(rows({1: "Anna"}))
    table.delete("id = 2")
    assert make(form).rebuild().changes == 2
    table.upsert(rows({3: "Cat"}))
    with pytest.raises(SinkMovedError):
        # The rebuild shut it out; then it looks at the topic again.
        first.step()
    assert first.step().changes == 1
    assert verify_sink(first).passed

    client = admin(broker.settings)
    client.delete_topics([first.sink.target])[first.sink.target].result()
    table.upsert(rows({4: "Dan"}))
    with pytest.raises(SinkGapError, match="is gone"):
        make(form).step()
    assert make(form).rebuild().changes == 4

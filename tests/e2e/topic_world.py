"""A broker, the streaming application, and a topic for each fault."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.bronze.reconcile import bronze_offsets
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import Settings
from spark_jobs.stack.catalog import make_topics
from spark_jobs.stack.kafka import admin, ensure_topics
from spark_jobs.stack.stack import write_manifest
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from tests.e2e import oracle
from tests.e2e.running import RunningStack, new_stack, write_files

PARTITIONS = {"recreated": 1, "expired": 1, "forgotten": 1, "old": 1, "spread": 3}
SOURCE = """\
description: Events of a test.
owner: tests
format: json
topic: {name}
event_id: event_id
event_time: happened_at
watermark: 1 hour
columns:
  event_id: {{type: STRING, required: true}}
  happened_at: {{type: TIMESTAMP, required: true}}
"""
SILVER = """\
/* silver
description: Events of a test.
owner: tests
*/
SELECT s.event_id, s.happened_at
FROM bronze.spread AS s
"""
# Records that are read before the fault.
READ = 10
# The application reports every few seconds and compares topic ids every 15; the rest is margin.
SECONDS = 240


@dataclass
class Events:
    """A broker, the streaming application, and records numbered by topic and partition."""

    running: RunningStack

    @property
    def settings(self) -> Settings:
        return self.running.settings

    @cached_property
    def admin(self) -> AdminClient:
        return admin(self.settings)

    def send(self, topic: str, partition: int, numbers: Iterable[int]) -> None:
        access = kafka_access(self.settings, Principal.LOADER)
        producer = Producer({**access.librdkafka(), "acks": "all"})
        for number in numbers:
            event = {"event_id": f"{partition}-{number}", "happened_at": "2026-01-02T03:04:05Z"}
            producer.produce(topic, json.dumps(event).encode(), partition=partition)
        assert producer.flush(60) == 0

    def offsets(self, source: str) -> dict[int, list[int]]:
        """The offsets in bronze, by partition."""
        location = Lake(self.settings.lake).location(TableName(Layer.BRONZE, source))
        return {part: sorted(held) for part, held in bronze_offsets(location).items()}

    def stream(self, source: str) -> StreamProgress | None:
        """The application's last report on a source."""
        with ControlStore.open(self.settings.control_url) as store:
            rows = {row.query: row for row in store.progress()}
        return rows.get(f"bronze.{source}")

    def wait_read(self, source: str, offsets: dict[int, list[int]]) -> None:
        oracle.wait_until(
            lambda: self.stream(source) is not None and self.offsets(source) == offsets,
            seconds=SECONDS,
            what=f"bronze.{source} holds {offsets}",
        )

    def wait_refused(self, source: str) -> str:
        """Wait until the source is refused; returns the message."""

        def refused() -> bool:
            stream = self.stream(source)
            return stream is not None and stream.state is StreamState.REFUSED

        oracle.wait_until(refused, seconds=SECONDS, what=f"bronze.{source} is refused")
        stream = self.stream(source)
        assert stream is not None
        assert stream.error is not None
        return stream.error

    def resume(self, source: str, *options: str) -> str:
        """Resume a refused source; returns the output."""
        why = ("--run", "--reason", "a test of what was lost")
        return self.running.tidemark("source", "resume", source, *options, *why).stdout


def small_broker(project: Path) -> Iterator[Events]:
    """A broker and the running application, with every topic read to its end."""
    sources = {f"sources/{name}.yml": SOURCE.format(name=name) for name in PARTITIONS}
    write_files(project, {**sources, "sql/silver/spread.sql": SILVER})
    pace = {
        "bronze_trigger_seconds": 0.5,
        "silver_trigger_seconds": 0.5,
        "max_offsets_per_trigger": READ,
    }
    # As where nothing is set; the long tier runs these tests with security on as well.
    secured = os.environ.get("TOPICS_SECURED") == "1"
    with new_stack(project, secured=secured, streams=pace) as running:
        made = Events(running)
        made.running.up("kafka")
        for name, partitions in PARTITIONS.items():
            ensure_topics(made.settings, [name], partitions=partitions)
        # The rights of who writes and reads them, where security is on.
        write_manifest(made.settings)
        make_topics(made.settings)
        for name, partitions in PARTITIONS.items():
            for partition in range(partitions):
                made.send(name, partition, range(READ))
        # Separately: with its usual dependencies, Postgres and Connect would start too.
        made.running.start("streams")
        for name, partitions in PARTITIONS.items():
            made.wait_read(name, {part: list(range(READ)) for part in range(partitions)})
        yield made

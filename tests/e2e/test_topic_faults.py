"""What becomes of bronze when a topic changes: refused by name, or read to the last record.

One broker and one streaming application serve all tests. Each fault has a topic of its own, so the
others show that a refused source holds back no other.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from spark_jobs.bronze.reconcile import bronze_offsets
from spark_jobs.local.kafka import admin, ensure_topics
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import Settings
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from tests.e2e import oracle
from tests.e2e.running import RunningStack, own_settings, remove, write_files

PARTITIONS = {"recreated": 1, "expired": 1, "forgotten": 1, "spread": 3}
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
# Read before anything happens to the topic.
READ = 10
# The application beats every few seconds and compares identities every 15; the rest is patience.
SECONDS = 240

pytestmark = pytest.mark.timeout(900)


@dataclass
class Events:
    """A broker, the streaming application, and records that are numbered by topic and partition."""

    running: RunningStack

    @property
    def settings(self) -> Settings:
        return self.running.settings

    @cached_property
    def admin(self) -> AdminClient:
        return admin(self.settings)

    def send(self, topic: str, partition: int, numbers: Iterable[int]) -> None:
        producer = Producer({"bootstrap.servers": self.settings.kafka, "acks": "all"})
        for number in numbers:
            event = {"event_id": f"{partition}-{number}", "happened_at": "2026-01-02T03:04:05Z"}
            producer.produce(topic, json.dumps(event).encode(), partition=partition)
        assert producer.flush(60) == 0

    def offsets(self, source: str) -> dict[int, list[int]]:
        """The offsets that bronze holds, by partition."""
        location = Lake(self.settings.lake).location(TableName(Layer.BRONZE, source))
        return {part: sorted(held) for part, held in bronze_offsets(location).items()}

    def stream(self, source: str) -> StreamProgress | None:
        """What the application last reported of a source."""
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
        """Wait until the source is refused; what the operator is told."""

        def refused() -> bool:
            stream = self.stream(source)
            return stream is not None and stream.state is StreamState.REFUSED

        oracle.wait_until(refused, seconds=SECONDS, what=f"bronze.{source} is refused")
        stream = self.stream(source)
        assert stream is not None
        assert stream.error is not None
        return stream.error


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Events]:
    """Every topic is read to its end, and the application runs."""
    project = tmp_path_factory.mktemp("topics")
    sources = {f"sources/{name}.yml": SOURCE.format(name=name) for name in PARTITIONS}
    write_files(project, {**sources, "sql/silver/spread.sql": SILVER})
    pace = {
        "bronze_trigger_seconds": 0.5,
        "silver_trigger_seconds": 0.5,
        "max_offsets_per_trigger": READ,
    }
    made = Events(RunningStack(own_settings(project, streams=pace)))
    try:
        made.running.up("kafka")
        for name, partitions in PARTITIONS.items():
            ensure_topics(made.settings, [name], partitions=partitions)
            for partition in range(partitions):
                made.send(name, partition, range(READ))
        # By itself: with its usual needs, Postgres and Connect would start too.
        made.running.start("streams")
        for name, partitions in PARTITIONS.items():
            made.wait_read(name, {part: list(range(READ)) for part in range(partitions)})
        yield made
    finally:
        remove(made.settings)


@pytest.fixture(scope="module")
def after_outage(events: Events) -> Events:
    """While the application was down, unread records expired and a checkpoint was lost."""
    events.running.stop("streams")
    events.send("expired", 0, range(READ, 2 * READ))
    (deleted,) = events.admin.delete_records([TopicPartition("expired", 0, READ + 5)]).values()
    deleted.result(30)
    events.send("forgotten", 0, range(READ, READ + 1))
    shutil.rmtree(Path(Lake(events.settings.lake).checkpoint("bronze.forgotten", 1)))
    events.running.start("streams")
    return events


def test_a_topic_of_several_partitions_balances_also_when_some_are_added(events: Events) -> None:
    (added,) = events.admin.create_partitions([NewPartitions("spread", 4)]).values()
    added.result(30)
    expected = {}
    for partition in range(4):
        old = READ if partition < PARTITIONS["spread"] else 0
        new = 3 * partition + 1
        events.send("spread", partition, range(old, old + new))
        expected[partition] = list(range(old + new))
    events.wait_read("spread", expected)
    answer = events.running.tidemark("reconcile", "--wait", "120", "--json", check=False)
    (balance,) = json.loads(answer.stdout)
    total = sum(map(len, expected.values()))
    assert balance["verdict"] == "balanced", balance
    assert (balance["kafka"]["kafka"], balance["kafka"]["bronze"]) == (total, total)
    assert balance["records"]["totals"]["applied"] == total


def test_a_topic_that_is_created_again_is_refused_while_its_stream_runs(events: Events) -> None:
    described = events.admin.describe_topics(TopicCollection(["recreated"]))
    known = str(described["recreated"].result(30).topic_id)
    (deleted,) = events.admin.delete_topics(["recreated"], operation_timeout=30).values()
    deleted.result(60)
    ensure_topics(events.settings, ["recreated"], partitions=1)
    told = events.wait_refused("recreated")
    assert "[TOPIC_RECREATED]" in told
    assert "topic 'recreated'" in told
    assert known in told
    spread = events.stream("spread")
    assert spread is not None
    assert spread.state is StreamState.RUNNING


def test_unread_records_that_expired_are_refused_with_their_offsets(after_outage: Events) -> None:
    told = after_outage.wait_refused("expired")
    assert "[OFFSETS_EXPIRED]" in told
    assert "topic 'expired'" in told
    assert f"Gone are partition 0: {READ} to {READ + 4}." in told
    assert after_outage.offsets("expired") == {0: list(range(READ))}


def test_a_lost_checkpoint_is_refused_and_no_record_is_stored_twice(after_outage: Events) -> None:
    told = after_outage.wait_refused("forgotten")
    assert "[CHECKPOINT_LOST]" in told
    assert "'forgotten'" in told
    assert after_outage.offsets("forgotten") == {0: list(range(READ))}

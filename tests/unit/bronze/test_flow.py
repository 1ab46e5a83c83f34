"""Whether the stream of a topic may go on, from its checkpoint, its table and the topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze import flow as flows
from spark_jobs.bronze.errors import (
    CheckpointDamagedError,
    CheckpointLostError,
    RecordUnreadableError,
    TopicRecreatedError,
)
from spark_jobs.bronze.flow import BronzeFlow
from spark_jobs.bronze.position import Start, write_identity
from spark_jobs.bronze.tail import Record
from spark_jobs.bronze.topics import TopicFacts, Topics
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.settings import load_settings
from spark_jobs.storage.checkpoints import write_text

AT = datetime(2026, 1, 2, tzinfo=UTC)
MILLISECONDS = int(AT.timestamp() * 1000)


class World:
    """A topic with one partition, its bronze table, and the checkpoint of the stream.

    Attributes:
        facts: what Kafka says of the topic.
        records: offsets of the topic's records.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.settings = load_settings(folder, state_dir=folder / "state")
        self.access = KafkaAccess(self.settings.kafka)
        self.facts_of_topic = TopicFacts(topic="t", topic_id="A", first={0: 0}, end={0: 0})
        self.records: list[int] = []
        source = SourceEntry(
            name="events",
            file="sources/events.yml",
            owner="me",
            description="d",
            format=SourceFormat.JSON,
            topic="t",
            columns=(),
        )
        self.flow = BronzeFlow(source, self.settings, cast(Topics, self))
        monkeypatch.setattr(flows, "held_at", self.held_at)

    def facts(self, topic: str) -> TopicFacts:
        assert topic == "t"
        return self.facts_of_topic

    def held_at(
        self, facts: TopicFacts, access: KafkaAccess, offsets: Mapping[int, range]
    ) -> dict[int, dict[int, Record]]:
        del facts, access
        return {
            part: {at: record(at) for at in self.records if at in one}
            for part, one in offsets.items()
        }

    def sent(self, *offsets: int, first: Mapping[int, int] | None = None) -> None:
        """The topic has these records in its first partition."""
        self.records = list(offsets)
        end = max(offsets, default=-1) + 1
        starts = first or {0: 0}
        self.facts_of_topic = TopicFacts(
            topic="t", topic_id="A", first=starts, end=dict.fromkeys(starts, end)
        )

    def landed(self, batch_id: int, *offsets: int) -> None:
        """The table has these records, of one batch."""
        commit = CommitProperties(app_transactions=[Transaction("q", batch_id)])
        write_deltalake(self.flow.table, table(*offsets), mode="append", commit_properties=commit)

    def committed(self, batch_id: int, end: int) -> None:
        """The checkpoint has this batch, up to an offset."""
        checkpoint = self.flow.checkpoint
        write_text(f"{checkpoint}/metadata", '{"id":"q"}')
        said = f'v1\n{{"batchTimestampMs":{MILLISECONDS}}}\n{{"t":{{"0":{end}}}}}'
        write_text(f"{checkpoint}/offsets/{batch_id}", said)
        write_text(f"{checkpoint}/commits/{batch_id}", 'v1\n{"nextBatchWatermarkMs":0}')


def table(*offsets: int) -> pa.Table:
    """The rows of bronze with these offsets."""
    return pa.table(
        {
            "key": pa.array([None] * len(offsets), pa.binary()),
            "value": pa.array([value(at) for at in offsets], pa.binary()),
            "partition": pa.array([0] * len(offsets), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "timestamp": pa.array([AT] * len(offsets), pa.timestamp("us", "UTC")),
        }
    )


def value(offset: int) -> bytes:
    return f"record {offset}".encode()


def record(offset: int) -> Record:
    return Record(MILLISECONDS, (None, value(offset)))


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_a_table_that_was_restored_alone_is_refused_and_read_on_from(world: World) -> None:
    world.sent(*range(30))
    world.landed(0, *range(10))
    world.committed(1, 20)
    found = world.flow.refusal()
    assert isinstance(found, CheckpointDamagedError)
    assert "ends at partition 0: 20" in found.problem
    assert "lacks records from partition 0: 10 on" in found.problem
    start = world.flow.start_after_table()
    assert (start.offsets, start.lost) == ({0: 10}, ())


def test_a_table_with_the_last_record_that_was_read_goes_on(world: World) -> None:
    # Offset 19 is the mark of a transaction.
    world.sent(*range(19), *range(20, 30))
    world.landed(0, *range(19))
    world.committed(0, 20)
    assert world.flow.refusal() is None


def test_a_torn_file_of_the_topics_id_is_named_and_the_table_read_on(world: World) -> None:
    world.sent(*range(20))
    world.landed(0, *range(10))
    world.committed(0, 10)
    place = f"{world.flow.checkpoint}.topic.json"
    write_text(place, "")
    found = world.flow.refusal()
    assert isinstance(found, CheckpointDamagedError)
    assert place in found.problem
    start = world.flow.start_after_table()
    assert (start.offsets, start.lost) == ({0: 10}, ())
    world.flow.resume(start, by="me@here", reason="the disk was full", at=AT)
    assert world.flow.refusal() is None
    # The file with the new position, too.
    write_text(f"{world.flow.checkpoint}.start.json", '{"held"')
    assert isinstance(world.flow.refusal(), CheckpointLostError)


def test_a_topic_that_was_created_again_before_any_record_came_can_be_resumed(
    world: World,
) -> None:
    world.sent()
    write_deltalake(world.flow.table, table())
    world.committed(0, 0)
    write_identity(world.flow.checkpoint, world.facts_of_topic)
    world.sent(0, 1, first={0: 0, 1: 0, 2: 0})
    world.facts_of_topic = replace(world.facts_of_topic, topic_id="B")
    # The old topic may have had records that nobody read, so a person decides.
    found = world.flow.refusal()
    assert isinstance(found, TopicRecreatedError)
    assert "tidemark source resume SOURCE" in (found.hint or "")
    start = world.flow.start_after_table()
    assert start == Start({}, {}, ())
    world.flow.resume(start, by="me@here", reason="more partitions", at=AT)
    assert world.flow.refusal() is None
    # With records of an older topic, a new one needs another table.
    world.landed(0, 0)
    world.facts_of_topic = replace(world.facts_of_topic, topic_id="C")
    with pytest.raises(TopicRecreatedError):
        world.flow.start_after_table()


def test_a_time_that_spark_cannot_hold_is_named(world: World) -> None:
    world.sent(*range(20))
    world.landed(0, *range(10))
    world.committed(0, 10)
    text = "[STREAM_FAILED] Query terminated\njava.lang.ArithmeticException: long overflow"
    found = world.flow.diagnose(RuntimeError(text))
    assert isinstance(found, RecordUnreadableError)
    assert found.offsets == {0: 10}
    assert "'t'" in found.primary
    assert world.flow.diagnose(RuntimeError("something else")) is None

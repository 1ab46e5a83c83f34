"""What becomes of bronze when a topic changes: refused by name, or read to the last record.

One broker and one streaming application serve all tests. Each fault has a topic of its own, so the
others show that a refused source holds back no other.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import NewPartitions

from spark_jobs.local.kafka import ensure_topics
from spark_jobs.state.progress import StreamState
from spark_jobs.storage.lake import Lake
from tests.e2e.topic_world import PARTITIONS, READ, Events

pytestmark = pytest.mark.timeout(900)


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

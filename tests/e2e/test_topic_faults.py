"""What becomes of bronze when a topic changes: refused by name, or read to the last record.

One broker and one streaming application serve all tests. Each fault has a topic of its own, so the
others show that a refused source holds back no other.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import NewPartitions

from spark_jobs.stack.kafka import ensure_topics
from spark_jobs.state.progress import StreamState
from spark_jobs.storage.lake import Lake
from tests.e2e import doors
from tests.e2e.topic_world import PARTITIONS, READ, Events

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def after_outage(events: Events, tmp_path_factory: pytest.TempPathFactory) -> Events:
    """While the application was down, unread records expired and checkpoints were lost."""
    old = Path(Lake(events.settings.lake).checkpoint("bronze.old", 1))
    older = tmp_path_factory.mktemp("checkpoint") / "1"
    shutil.copytree(old, older)
    events.send("old", 0, range(READ, 2 * READ))
    events.wait_read("old", {0: list(range(2 * READ))})
    events.running.stop("streams")
    shutil.rmtree(old)
    shutil.copytree(older, old)
    events.send("old", 0, range(2 * READ, 3 * READ))
    events.send("expired", 0, range(READ, 2 * READ))
    (deleted,) = events.admin.delete_records([TopicPartition("expired", 0, READ + 5)]).values()
    deleted.result(30)
    events.send("forgotten", 0, range(READ, READ + 1))
    shutil.rmtree(Path(Lake(events.settings.lake).checkpoint("bronze.forgotten", 1)))
    events.running.start("streams")
    return events


@dataclass(frozen=True)
class Refused:
    """What an operator was told of a source, and what bronze held, before it was resumed."""

    told: str
    offsets: dict[int, list[int]]


@pytest.fixture(scope="module")
def refused(after_outage: Events) -> dict[str, Refused]:
    """Sources that were refused, and are resumed together: each is tried again every minute."""
    found = {}
    for source in ("expired", "forgotten", "old"):
        told = after_outage.wait_refused(source)
        found[source] = Refused(told, after_outage.offsets(source))
    gap = after_outage.running.tidemark("source", "resume", "expired", check=False)
    assert "RECORDS_EXPIRED" in gap.stderr
    assert f"partition 0: {READ} to {READ + 4}" in gap.stderr
    after_outage.resume("expired", "--let-pass")
    after_outage.resume("forgotten")
    after_outage.resume("old")
    return found


def test_streams_ask_for_a_login_where_nothing_is_set(events: Events) -> None:
    parts = ("streams", "kafka")
    # Kafka's door is open, as docs/security.md says.
    assert doors.tried(events.running, parts) == doors.expected(events.settings, parts)
    doors.assert_spark_asks(events.running, "streams")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_account_reads_nothing_of_a_plain_stack_but_gold(events: Events) -> None:
    doors.assert_gold_alone(events.running)


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


@pytest.mark.long
def test_unread_records_that_expired_are_refused_with_their_offsets(
    events: Events, refused: dict[str, Refused]
) -> None:
    expired = refused["expired"]
    assert "[OFFSETS_EXPIRED]" in expired.told
    assert "topic 'expired'" in expired.told
    assert f"The lost offsets are partition 0: {READ} to {READ + 4}." in expired.told
    assert expired.offsets == {0: list(range(READ))}
    events.wait_read("expired", {0: [*range(READ), *range(READ + 5, 2 * READ)]})


@pytest.mark.long
def test_a_lost_checkpoint_is_refused_until_the_table_says_where_to_go_on(
    events: Events, refused: dict[str, Refused]
) -> None:
    forgotten = refused["forgotten"]
    assert "[CHECKPOINT_LOST]" in forgotten.told
    assert "'forgotten'" in forgotten.told
    assert forgotten.offsets == {0: list(range(READ))}
    events.wait_read("forgotten", {0: list(range(READ + 1))})
    assert "nothing to do" in events.resume("forgotten")


@pytest.mark.long
def test_an_older_copy_of_a_checkpoint_is_refused_and_skips_no_record(
    events: Events, refused: dict[str, Refused]
) -> None:
    old = refused["old"]
    assert "[CHECKPOINT_DAMAGED]" in old.told
    assert "the table at batch" in old.told
    assert old.offsets == {0: list(range(2 * READ))}
    events.wait_read("old", {0: list(range(3 * READ))})

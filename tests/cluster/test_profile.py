"""The profile `cluster` from end to end: parts are taken away under load, and nothing is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import PartitionMetadata

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.cli.demo import PERIOD, SCHEDULED
from spark_jobs.demo.background import BackgroundLoad
from spark_jobs.demo.database import create_shop
from spark_jobs.demo.load import LoadOrder
from spark_jobs.graph.manifest import Manifest
from spark_jobs.stack.connect import client, connector_status
from spark_jobs.stack.kafka import admin
from spark_jobs.stack.parts import numbered
from spark_jobs.stack.postgres import SHOP, dsn
from spark_jobs.stack.spark_cluster import master_status
from tests.cluster.attempts import attempts, wanted
from tests.e2e import doors, oracle
from tests.e2e.running import RunningStack, new_stack
from tests.e2e.soundness import assert_sound, wait_drained

WATCHED = "shop.public.orders"
PATIENCE_SECONDS = 600
MOST_BYTES = 16 * 2**30

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def stack() -> Iterator[RunningStack]:
    schedule = {"every_override": PERIOD, "scheduled_at_first": SCHEDULED}
    with new_stack(profile="cluster", secured=False, gold=schedule) as running:
        running.up()
        yield running


def topics(stack: RunningStack) -> dict[str, list[PartitionMetadata]]:
    """The partitions of every topic of a source."""
    manifest = Manifest.read(stack.settings.manifest_file)
    names = [source.topic for source in manifest.sources.values() if source.topic]
    found = admin(stack.settings).list_topics(timeout=30).topics
    return {name: list(found[name].partitions.values()) for name in names}


def wait_replicated(stack: RunningStack) -> None:
    """Wait until each partition has all its replicas, and these have all records."""

    def replicated() -> bool:
        partitions = [one for found in topics(stack).values() for one in found]
        return all(len(one.replicas) == len(one.isrs) == 3 for one in partitions)

    oracle.wait_until(replicated, seconds=PATIENCE_SECONDS, what="three replicas in sync")


def kafka_ends(stack: RunningStack) -> dict[str, int]:
    """Records that each source's topic ever held; asked again while leaders are chosen."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return oracle.kafka_ends(stack.settings)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)


def wait_landed(stack: RunningStack) -> None:
    """Wait until what the brokers hold now is in bronze, whatever comes meanwhile."""
    ends = kafka_ends(stack)

    def landed() -> bool:
        counts = oracle.bronze_counts(stack.settings)
        return all(counts[name] >= end for name, end in ends.items())

    oracle.wait_until(landed, seconds=PATIENCE_SECONDS, what=f"bronze holds {ends}")


def capturing(stack: RunningStack) -> str:
    """The Connect worker that runs the connector's task."""
    with client(stack.settings) as api:
        status = connector_status(api)
    assert status is not None
    port = int(status["tasks"][0]["worker_id"].rpartition(":")[2])
    numbers = range(1, stack.settings.local.connect_workers + 1)
    [number] = [one for one in numbers if stack.settings.ports.of("connect", one)[1] == port]
    return numbered("connect", number)


def cores_used(stack: RunningStack) -> int:
    """The cores that applications have of Spark's cluster."""
    status = master_status(stack.settings)
    assert status is not None
    return status["coresused"]


def resident(stack: RunningStack) -> int:
    """The memory of the whole stack in bytes; shared pages are counted once."""
    total = 0
    for pid in stack.stack.pids():
        with suppress(psutil.Error):
            total += psutil.Process(pid).memory_full_info().pss
    return total


def test_nothing_is_lost_when_a_broker_and_two_workers_are_taken_away(stack: RunningStack) -> None:
    shop = dsn(stack.settings, database=SHOP, role=SHOP)
    create_shop(shop)
    wait_replicated(stack)
    order = LoadOrder(rate=10, seconds=3000, seed=21)
    with BackgroundLoad(order, shop_dsn=shop, kafka=KafkaAccess(stack.settings.kafka)) as load:
        load.start()
        wait_landed(stack)
        assert cores_used(stack) == 4

        # The broker that clients write to, and the worker that captures changes.
        leader = topics(stack)[WATCHED][0].leader
        gone = [numbered("kafka", leader), capturing(stack), "spark-worker"]
        for name in gone:
            stack.take_away(name)
        captured = kafka_ends(stack)["orders"]
        oracle.wait_until(
            lambda: kafka_ends(stack)["orders"] > captured,
            seconds=PATIENCE_SECONDS,
            what="changes are captured by the other worker",
        )
        assert topics(stack)[WATCHED][0].leader != leader
        wait_landed(stack)
        assert cores_used(stack) == 2

        for name in gone:
            stack.start(name)
        stack.wait_ready(*gone, seconds=PATIENCE_SECONDS)
        assert load.running
        load.stop()
        tally = load.finish()
    wait_replicated(stack)
    wait_drained(stack, shop)
    stack.tidemark("refresh", "--all", seconds=1200)
    taken = resident(stack)
    print(f"operations={load.done} records={sum(tally.records.values())} bytes={taken}")
    assert taken < MOST_BYTES
    assert_sound(stack)


def test_without_security_kafka_alone_is_open(stack: RunningStack) -> None:
    assert attempts(stack.settings) == wanted(stack.settings)
    assert doors.postgres(stack.settings) == "refused"


def test_each_part_is_printed_and_all_are_stopped(stack: RunningStack) -> None:
    answer = stack.tidemark("stack", "status", "--json")
    told = {one["part"]: one["ready"] for one in json.loads(answer.stdout)}
    assert {"kafka-3", "connect-2", "spark-master", "spark-worker-2"} <= set(told)
    assert all(told.values())
    assert stack.stack.down()
    assert stack.stack.pids() == set()

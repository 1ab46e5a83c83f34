"""From Kafka to gold in a lake that is in an object store, on a stack of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.cli.demo import PERIOD, SCHEDULED
from spark_jobs.demo.database import create_shop
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.demo.malformed import REQUIRED_FIELD
from spark_jobs.stack import object_store
from spark_jobs.stack.postgres import SHOP, dsn
from tests.e2e import oracle
from tests.e2e.running import RunningStack, new_stack
from tests.e2e.soundness import PATIENCE_SECONDS, assert_sound, wait_drained

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def stack() -> Iterator[RunningStack]:
    schedule = {"every_override": PERIOD, "scheduled_at_first": SCHEDULED}
    with new_stack(secured=False, gold=schedule, local={"object_store": True}) as running:
        running.up()
        yield running


@pytest.fixture(scope="module")
def shop(stack: RunningStack) -> str:
    url = dsn(stack.settings, database=SHOP, role=SHOP)
    create_shop(url)
    return url


def loaded(stack: RunningStack, shop: str, *, seed: int) -> None:
    """Put the stack under load for seconds, and wait until all of it arrived."""
    order = LoadOrder(rate=20, seconds=15, seed=seed)
    run_load(order, shop_dsn=shop, kafka=KafkaAccess(stack.settings.kafka))
    wait_drained(stack, shop)


def test_what_was_sent_is_in_gold(stack: RunningStack, shop: str):
    loaded(stack, shop, seed=31)
    stack.tidemark("refresh", "--all", seconds=1200)
    assert_sound(stack)
    assert any(oracle.quarantine_count(stack.settings, topic) for topic in REQUIRED_FIELD)
    status = json.loads(stack.tidemark("status", "--json").stdout)
    assert status
    maintained = stack.tidemark("maintain", "--dry-run", check=False)
    assert maintained.returncode == 0, maintained.stdout + maintained.stderr


def test_nothing_is_lost_when_the_store_and_the_streams_are_killed(stack: RunningStack, shop: str):
    for victim in (object_store.NAME, "streams"):
        pid = stack.kill(victim)
        loaded_later = LoadOrder(rate=10, seconds=5, seed=pid)
        run_load(loaded_later, shop_dsn=shop, kafka=KafkaAccess(stack.settings.kafka))
        stack.wait_restarted(victim, pid, seconds=PATIENCE_SECONDS)
    stack.wait_ready(seconds=PATIENCE_SECONDS)
    loaded(stack, shop, seed=32)
    stack.tidemark("refresh", "--all", seconds=1200)
    assert_sound(stack)

"""The profile `cluster` with security on: data flows, and nobody gets in without a secret."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.cli.demo import PERIOD, SCHEDULED
from spark_jobs.demo.database import create_shop
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.stack.postgres import SHOP, dsn
from tests.cluster.attempts import attempts, wanted
from tests.e2e import doors
from tests.e2e.running import RunningStack, new_stack
from tests.e2e.soundness import assert_sound, wait_drained

pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def stack() -> Iterator[RunningStack]:
    schedule = {"every_override": PERIOD, "scheduled_at_first": SCHEDULED}
    with new_stack(profile="cluster", gold=schedule) as running:
        running.up()
        yield running


def test_what_is_sent_reaches_gold(stack: RunningStack) -> None:
    shop = dsn(stack.settings, database=SHOP, role=SHOP)
    create_shop(shop)
    order = LoadOrder(rate=10, seconds=30, seed=22)
    run_load(order, shop_dsn=shop, kafka=kafka_access(stack.settings, Principal.LOADER))
    wait_drained(stack, shop)
    stack.tidemark("refresh", "--all", seconds=1200)
    assert_sound(stack)


def test_nobody_gets_in_without_a_secret(stack: RunningStack) -> None:
    assert attempts(stack.settings) == wanted(stack.settings)
    assert doors.postgres(stack.settings) == "refused"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_of_the_state_directory_another_account_reads_nothing(stack: RunningStack) -> None:
    assert doors.readable(stack.settings.state) <= {"."}
    doors.assert_no_socket_answers(stack.settings)

"""A laptop that is closed and opened: every process stands still for minutes and then goes on.

Nobody starts or repairs anything afterwards. A refresh by hand is under way when the lid closes.
"""

from __future__ import annotations

import subprocess
import time
from datetime import UTC, datetime

import pytest

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.stack.environment import stack_environment
from tests.e2e import oracle
from tests.e2e.running import TIDEMARK, RunningStack
from tests.e2e.soundness import (
    assert_served,
    assert_sound,
    shop_of,
    wait_drained,
    wait_for_the_views,
)

# Longer than every timeout by which Spark, Kafka, Connect or Airflow gives somebody up.
CLOSED_SECONDS = 300
# Within which `status --check` finds nothing; it took 16 on two cores that others used as well.
GREEN_SECONDS = 120
# Until the refresh has begun to compute.
BEGUN_SECONDS = 15

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


def send(running: RunningStack, shop: str, *, seed: int) -> None:
    """Some seconds of changes and events."""
    access = kafka_access(running.settings, Principal.LOADER)
    run_load(LoadOrder(rate=80, seconds=10, seed=seed), shop_dsn=shop, kafka=access)


def test_a_frozen_stack_recovers_by_itself(plain_stack: RunningStack) -> None:
    stack, shop = plain_stack, shop_of(plain_stack)
    send(stack, shop, seed=31)
    wait_drained(stack, shop)
    refresh = subprocess.Popen(
        [TIDEMARK, "refresh", "--all"],
        env=stack_environment(stack.settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        time.sleep(BEGUN_SECONDS)
        # The last of it is still on its way when everything stops.
        send(stack, shop, seed=32)
        assert refresh.poll() is None, "nothing is computed"
        with stack.asleep(refresh.pid):
            time.sleep(CLOSED_SECONDS)
        opened = datetime.now(UTC)

        def green() -> bool:
            return stack.tidemark("status", "--check", check=False).returncode == 0

        oracle.wait_until(green, seconds=GREEN_SECONDS, what="status --check is green")
        print(f"green after {(datetime.now(UTC) - opened).total_seconds():.0f} s")
        stack.wait_ready()
        output, _ = refresh.communicate(timeout=1200)
        assert refresh.returncode == 0, output
    finally:
        refresh.kill()
    wait_drained(stack, shop)

    send(stack, shop, seed=33)
    wait_drained(stack, shop)
    views = wait_for_the_views(stack, opened)
    stack.refresh("viewership_summary")
    assert_sound(stack, *{*views, "viewership_summary"})
    assert_served(stack)

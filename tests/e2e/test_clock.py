"""The host's clock is set forward and back under a running stack: nothing is lost or stuck.

Every part reads the host's clock through a library that adds a difference, so all of them see the
same jump. The clock by which they wait goes on, as it does on a real host.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.stack import environment
from spark_jobs.state.failpoints import EXIT_CODE, VARIABLE
from tests.e2e import oracle
from tests.e2e.running import TIDEMARK, RunningStack, new_stack
from tests.e2e.soundness import assert_sound, shop_of, wait_drained
from tests.walk.world import PARTS

pytestmark = pytest.mark.long

SOURCE = Path(__file__).with_name("clock.c")
# Longer than any lease, heartbeat or session that a part has.
AHEAD = timedelta(minutes=100)
# One that is refreshed continuously, two that join, and one that reads the clock.
VIEWS = (
    "user_order_stats",
    "user_revenue",
    "order_inventory_match",
    "order_inventory_match_last_hour",
)


@dataclass
class Clock:
    """The clock of all parts: a file with the difference from the host's, which they map."""

    file: Path

    def set(self, difference: timedelta) -> None:
        with self.file.open("r+b") as file:
            file.write(struct.pack("q", int(difference.total_seconds())))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    # Not below pytest's directories, which PostgreSQL's user cannot traverse.
    folder = Path(tempfile.mkdtemp(prefix="tidemark-clock-"))
    folder.chmod(0o755)
    library, file = folder / "clock.so", folder / "difference"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    file.write_bytes(struct.pack("q", 0))
    variables = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(file)}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(environment, "INHERITED", (*environment.INHERITED, *variables))
    yield Clock(file)
    shutil.rmtree(folder)


@pytest.fixture
def running(clock: Clock) -> Iterator[RunningStack]:
    with new_stack(secured=False) as found:
        found.up(*PARTS)
        yield found


def work(running: RunningStack, shop: str, *, seed: int) -> None:
    """Change tables and send events, then compare every table and some views."""
    access = kafka_access(running.settings, Principal.LOADER)
    run_load(LoadOrder(rate=60, seconds=5, seed=seed), shop_dsn=shop, kafka=access)
    wait_drained(running, shop, oracle.kafka_counts)
    done = running.tidemark("refresh", "--all", check=False, seconds=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert_sound(running, *VIEWS)


def kill_a_refresh(running: RunningStack, view: str) -> None:
    """Kill a refresh that holds the lease of its table."""
    variables = {**environment.stack_environment(running.settings), VARIABLE: "gold.publish.locked"}
    ended = subprocess.run(
        [TIDEMARK, "refresh", view, "--force"], env=variables, capture_output=True, check=False
    )
    assert ended.returncode == EXIT_CODE, ended


def test_nothing_is_lost_or_stuck_when_the_clock_is_set_forward_and_back(
    running: RunningStack, clock: Clock
) -> None:
    shop = shop_of(running)
    work(running, shop, seed=1)
    clock.set(AHEAD)
    work(running, shop, seed=2)
    kill_a_refresh(running, "user_revenue")
    clock.set(timedelta(0))
    # It does not wait until the clock has caught up with the dead refresh's lease.
    running.refresh("user_revenue")
    work(running, shop, seed=3)
    # Parts that start find files and rows from later.
    for name in ("streams", "connect", "kafka"):
        running.kill(name)
    running.wait_ready(*PARTS)
    work(running, shop, seed=4)
    passes = running.tidemark("status", "--check", check=False)
    assert passes.returncode == 0, passes.stdout + passes.stderr

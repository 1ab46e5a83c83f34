"""Many processes at once, killed ones included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.failpoints import EXIT_CODE
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from tests.forking import forking

PROCESSES = 4
ROUNDS = 10
TABLE = TableName.parse("silver.orders")
TABLES = [TABLE, TableName.parse("bronze.clicks")]


def work(url: str, number: int) -> tuple[list[int], list[int], int]:
    """Pin, take sequences and leases as fast as possible; what this process got."""
    pinned, sequences, collisions = [], [], 0
    with ControlStore.open(url) as store:
        for turn in range(ROUNDS):
            pins = dict.fromkeys(TABLES, TableVersion("id", number))
            (version,) = {one.version for one in store.pin_versions(f"tick{turn}", pins).values()}
            pinned.append(version)
            now = datetime.now(UTC)
            planned = RefreshAttempt(
                attempt_id=f"{number}-{turn}",
                view="v",
                tick=f"tick{turn}",
                epoch=1,
                started_at=now,
                updated_at=now,
            )
            sequences.append(store.create_attempt(planned).sequence or 0)
            try:
                with store.lease("t", owner=f"process {number}", seconds=30):
                    time.sleep(0.001)
            except LeaseTakenError:
                collisions += 1
    return pinned, sequences, collisions


def test_processes_agree_on_pins_and_share_no_sequence(control_url: str) -> None:
    # Opened by all at once, so that the migration races too.
    with forking(__name__).Pool(PROCESSES) as pool:
        found = pool.starmap(work, [(control_url, number) for number in range(PROCESSES)])
    pins = [pinned for pinned, _, _ in found]
    assert all(one == pins[0] for one in pins)
    sequences = sorted(number for _, taken, _ in found for number in taken)
    assert sequences == list(range(1, PROCESSES * ROUNDS + 1))
    with ControlStore.open(control_url) as store:
        assert store.lease_holder("t") is None


HOLD = """
import sys, time
from pathlib import Path
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
with ControlStore.open(sys.argv[1]) as store, store.lease("t", owner="doomed", seconds=1.5):
    with table_lock(Path(sys.argv[2]), "gold.t"):
        print("held", flush=True)
        time.sleep(60)
"""


@pytest.fixture
def holder(control_url: str, tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, control_url, str(tmp_path / "locks")],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_killed_holder_keeps_nobody_out_for_long(
    control_url: str, tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    locks = tmp_path / "locks"
    with ControlStore.open(control_url) as store:
        with pytest.raises(LeaseTakenError) as taken, store.lease("t", owner="me", seconds=9):
            pass
        assert taken.value.holder == "doomed"
        with pytest.raises(TableLockedError) as locked, table_lock(locks, "gold.t"):
            pass
        assert locked.value.holder == f"process {holder.pid}"
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with table_lock(locks, "gold.t"):
            pass
        time.sleep(1.6)
        with store.lease("t", owner="me", seconds=9) as mine:
            assert mine.fencing == 2


def test_a_lock_is_held_once_even_within_a_process(tmp_path: Path) -> None:
    with table_lock(tmp_path, TABLE) as path:
        with pytest.raises(TableLockedError) as locked, table_lock(tmp_path, TABLE):
            pass
        assert (locked.value.table, locked.value.path) == ("silver.orders", path)
        with table_lock(tmp_path, "silver.others"):
            pass
    with table_lock(tmp_path, TABLE):
        pass


def test_a_lock_stays_in_its_directory(tmp_path: Path) -> None:
    with table_lock(tmp_path / "locks", "../../etc/x") as path:
        assert path.parent == tmp_path / "locks"


@pytest.mark.parametrize(
    ("armed", "code"),
    [("", 0), ("other", 0), ("point", EXIT_CODE), ("point:2", EXIT_CODE), ("point:3", 0)],
)
def test_an_armed_failpoint_ends_the_process_there(armed: str, code: int) -> None:
    script = "from spark_jobs.state.failpoints import failpoint as f; f('point'); f('point')"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TIDEMARK_FAILPOINT": armed},
        check=False,
    )
    assert done.returncode == code

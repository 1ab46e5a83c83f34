"""Every version of a view over several tables of one database shows whole transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.bank_world import PARTS, Bank, project_files, torn
from tests.e2e.running import new_stack, write_files

SECONDS = 240
CLIENTS, RATE = 4, 15
FEW = 500
MINUTES = 5
UNDISTURBED = 60
MANY = 1_000_000


@pytest.fixture
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bank]:
    """A bank of so many accounts; nothing reads its database yet."""
    write_files(tmp_path, project_files("transactional", "newest"))
    with new_stack(tmp_path) as running:
        found = Bank(running, accounts=request.param)
        running.up("postgres")
        found.create()
        yield found


@pytest.mark.parametrize("bank", [FEW], indirect=True)
def test_every_version_shows_whole_transactions_whatever_is_killed(bank: Bank) -> None:
    with bank.load(clients=CLIENTS, rate=RATE):
        # The first snapshot is read under load, too.
        bank.running.up(*PARTS)
        bank.wait_more_than(3, view="transactional", seconds=SECONDS)
        bank.change_many(7)
        streams = bank.running.kill("streams")
        time.sleep(5)
        connect = bank.running.kill("connect")
        bank.running.wait_restarted("streams", streams)
        bank.running.wait_restarted("connect", connect)
        bank.wait_more_than(
            len(bank.versions("transactional")) + 3, view="transactional", seconds=SECONDS
        )
    assert bank.done["committed"] > 200
    assert bank.done["rolled back"] > 10
    assert_whole(bank)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("bank", [100_000], indirect=True)
def test_a_bank_of_many_accounts_under_every_kind_of_kill(bank: Bank) -> None:
    """Five minutes of TPC-B under kills, with a table that is altered and one that is added.

    Then one transaction of a million rows.
    """
    running = bank.running
    kinds: list[Callable[[], object]] = [
        lambda: running.kill("streams"),
        lambda: bank.change_many(3),
        bank.kill_driver,
        lambda: running.kill("connect"),
        bank.alter,
        lambda: running.kill("kafka"),
        bank.drop_senders,
        lambda: bank.kill_refresh("newest"),
        lambda: bank.change_many(5),
        lambda: running.kill("streams"),
    ]
    with bank.load(clients=4, rate=100):
        running.up(*PARTS)
        bank.wait_more_than(3, view="transactional", seconds=2 * SECONDS)
        bank.add_table("loans", 20_000)
        quiet, began = time.time(), time.monotonic()
        time.sleep(UNDISTURBED)
        struck = time.time()
        for number, strike in enumerate(kinds, start=1):
            strike()
            until = began + UNDISTURBED + MINUTES * 60 * number / len(kinds)
            time.sleep(max(0.0, until - time.monotonic()))
    running.wait_ready(*PARTS)
    assert bank.done["committed"] > MINUTES * 60 * 50
    assert bank.done["killed refreshes"] == 1
    assert bank.done["applies that succeeded"] == 1
    assert_whole(bank)
    for view in ("newest", "transactional"):
        found = bank.latencies(view, since=quiet)
        calm = bank.latencies(view, since=quiet, until=struck)
        print(f"{view}: seconds to gold, undisturbed {spread(calm)}, all {spread(found)}")

    counted = bank.totals()["history"][1]
    inserted = time.time()
    bank.insert_many(MANY)
    assert_whole(bank)
    shown = [one["history"][1] for one in bank.versions("transactional")]
    assert [number for number in shown if counted < number < counted + MANY] == []
    many = bank.latencies("transactional", since=inserted)
    print(f"a transaction of {MANY:,} rows: {spread(many)}")
    for command in (["verify", "--all"], ["reconcile"]):
        checked = running.tidemark(*command, check=False, seconds=600)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        print(checked.stdout)


def spread(seconds: list[float]) -> str:
    """The median and the 95th percentile of sorted seconds."""
    return f"p50 {seconds[len(seconds) // 2]:.1f} s, p95 {seconds[len(seconds) * 95 // 100]:.1f} s"


def assert_whole(bank: Bank) -> None:
    """Both views show what the database has, and every version of one showed whole transactions."""
    for view in ("transactional", "newest"):
        bank.wait_shown(view, seconds=3 * SECONDS)
    shown = bank.versions("transactional")
    assert torn(shown) == []
    # The sums moved: a view that shows nothing would agree too.
    assert len({one["accounts"] for one in shown}) > 5
    loose = bank.versions("newest")
    print(f"{dict(bank.done)}; whole: {len(shown)} versions", end="; ")
    print(f"newest: {len(torn(loose))} of {len(loose)} are torn")

"""Every version of a view over several tables of one database shows whole transactions."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.e2e.bank_world import PARTS, Bank, project_files, torn
from tests.e2e.running import RunningStack, own_settings, remove, write_files

SECONDS = 240
CLIENTS, RATE = 4, 40


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    project = tmp_path_factory.mktemp("bank")
    write_files(project, project_files("transactional", "newest"))
    found = Bank(RunningStack(own_settings(project)))
    try:
        found.running.up("postgres")
        found.create()
        found.running.up(*PARTS)
        yield found
    finally:
        remove(found.running.settings)


def test_every_version_shows_whole_transactions_whatever_is_killed(bank: Bank) -> None:
    with bank.load(clients=CLIENTS, rate=RATE):
        bank.wait_more_than(5, view="transactional", seconds=SECONDS)
        bank.change_many(7)
        streams = bank.running.kill("streams")
        time.sleep(5)
        connect = bank.running.kill("connect")
        bank.running.wait_restarted("streams", streams)
        bank.running.wait_restarted("connect", connect)
        bank.wait_more_than(
            len(bank.versions("transactional")) + 5, view="transactional", seconds=SECONDS
        )
    assert bank.done["committed"] > 200
    assert bank.done["rolled back"] > 10
    bank.wait_shown("transactional", seconds=SECONDS)
    bank.wait_shown("newest", seconds=SECONDS)

    shown = bank.versions("transactional")
    assert torn(shown) == []
    # The sums moved: a view that shows nothing would agree too.
    assert len({one["accounts"] for one in shown}) > 5
    verified = bank.running.tidemark("verify", "--all", check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    print("versions", len(shown), "torn of newest", len(torn(bank.versions("newest"))))

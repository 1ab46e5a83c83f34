"""What is trimmed from the control database; reconciling gives the same sums afterwards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state import trimming
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.store import ControlStore
from spark_jobs.state.trimming import Trimmed
from spark_jobs.state.verifications import VerificationRecord

NOW = datetime(2024, 5, 2, 12, tzinfo=UTC)
KEPT = 3


@pytest.fixture(autouse=True)
def few_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(trimming.trim.__kwdefaults__, "keep", KEPT)


def attempt(day: int, status: AttemptStatus) -> RefreshAttempt:
    at = NOW - timedelta(days=day)
    return RefreshAttempt(
        attempt_id=f"{status}-{day}",
        view="daily",
        tick=f"t{day}",
        status=status,
        epoch=1,
        started_at=at,
        updated_at=at,
    )


def test_trimming_keeps_the_newest_ended_attempts_of_each_status(store: ControlStore) -> None:
    for day in range(6, 0, -1):
        for status in AttemptStatus:
            store.create_attempt(attempt(day, status))
    before = NOW - timedelta(days=1, hours=12)
    assert store.trim(before=before, dry_run=True).attempts == 12
    assert len(store.attempts("daily", limit=100)) == 48
    assert store.trim(before=before).attempts == 12
    assert store.trim(before=before).total == 0
    ended = store.attempts("daily", statuses=(AttemptStatus.PUBLISHED,), limit=100)
    assert [one.attempt_id for one in ended] == ["published-1", "published-2", "published-3"]
    blocked = store.attempts(
        "daily", statuses=(AttemptStatus.BLOCKED, AttemptStatus.STAGED), limit=100
    )
    assert len(blocked) == 12
    assert store.create_attempt(attempt(0, AttemptStatus.PLANNED)).sequence == 49


def test_recent_rows_are_not_trimmed(store: ControlStore) -> None:
    for day in range(6):
        store.create_attempt(attempt(day, AttemptStatus.PUBLISHED))
    assert store.trim(before=NOW - timedelta(days=30)) == Trimmed(0, 0, 0)


def test_trimming_keeps_the_newest_verifications(store: ControlStore) -> None:
    for day in range(5):
        store.record_verification(
            VerificationRecord(
                view="daily",
                version=day,
                finding="EQUAL",
                detail="",
                vector={},
                rows=1,
                at=NOW - timedelta(days=day),
            )
        )
    assert store.trim(before=NOW).verifications == 2
    assert [one.version for one in store.verifications("daily")] == [0, 1, 2]


def test_batches_are_summed_up_and_the_newest_stay_to_be_run_again(store: ControlStore) -> None:
    def record(epoch: int, number: int, *, applied: int) -> None:
        store.record_silver_batch(
            SilverBatch(
                silver="orders",
                epoch=epoch,
                batch_id=number,
                records=applied + 1,
                applied=applied,
                duplicate=1,
                first_bronze_version=number,
                last_bronze_version=number,
                at=NOW - timedelta(days=20 - number),
            )
        )

    for number in range(10):
        record(1, number, applied=number)
    record(2, 0, applied=100)
    before = {epoch: store.silver_totals("orders", epoch=epoch) for epoch in (1, 2)}
    limit = NOW - timedelta(days=14)

    # Batches 0 to 5 are old; 7, 8 and 9 stay whatever their age.
    assert store.trim(before=limit, dry_run=True).silver_batches == 5
    assert store.silver_totals("orders", epoch=1) == before[1]
    assert store.trim(before=limit).silver_batches == 5
    after = store.silver_totals("orders", epoch=1)
    assert after.batches == 5
    assert (after.records, after.applied, after.duplicate) == (55, 45, 10)
    assert (after.last_bronze_version, after.last_at) == (9, before[1].last_at)
    assert store.silver_totals("orders", epoch=2) == before[2]
    assert store.trim(before=limit).silver_batches == 0

    record(1, 9, applied=19)
    assert store.silver_totals("orders", epoch=1).applied == 55
    assert store.trim(before=NOW).silver_batches == 1
    assert store.silver_totals("orders", epoch=1).applied == 55


def test_the_oldest_pin_of_each_table(store: ControlStore) -> None:
    orders, users = TableName.parse("silver.orders"), TableName.parse("silver.users")
    started = datetime.now(UTC)
    store.pin_versions("1", {orders: TableVersion("a", 7), users: TableVersion("b", 3)})
    store.pin_versions("2", {orders: TableVersion("a", 5)})
    found = {("silver.orders", "a"): 5, ("silver.users", "b"): 3}
    assert store.oldest_pins(since=started - timedelta(seconds=1)) == found
    assert store.oldest_pins(since=started + timedelta(hours=1)) == {}

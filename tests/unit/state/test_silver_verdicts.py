"""Verdicts on silver batches: beside the counts, and apart from the batches that were applied."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.store import ControlStore

NOW = datetime(2026, 1, 2, tzinfo=UTC)
FAILED = {"expectations": 2, "failed": 1, "results": [{"message": "a of b failed"}]}


def record(
    store: ControlStore, number: int, outcome: str | None, *, records: int = 3, epoch: int = 1
) -> SilverBatch:
    batch = SilverBatch(
        silver="orders",
        epoch=epoch,
        batch_id=number,
        records=records,
        applied=records,
        at=NOW + timedelta(minutes=number),
        outcome=outcome,
        verdict=None if outcome is None else FAILED,
    )
    store.record_silver_batch(batch)
    return batch


def test_failed_batches_are_counted_and_the_last_is_shown(store: ControlStore) -> None:
    assert store.judged_batches("orders", since=NOW) is None
    record(store, 1, None)
    failed = [record(store, number, "warned") for number in (2, 3)]
    last = record(store, 4, "passed")

    found = store.judged_batches("orders", since=NOW)

    assert found is not None
    assert (found.last, found.judged, found.failed, found.failing) == (last, 3, 2, failed[1])
    assert found.as_dict()["last_failed"] == FAILED
    recent = store.judged_batches("orders", since=failed[1].at)
    assert recent is not None
    assert (recent.judged, recent.failed, recent.failing) == (1, 0, None)
    assert store.judged_batches("users", since=NOW) is None


def test_a_held_batch_is_not_an_applied_one(store: ControlStore) -> None:
    record(store, 1, "passed")
    held = record(store, 2, "blocked", records=0)

    assert store.held_batch("orders", epoch=1) == held
    # Another epoch reads the records in other batches.
    assert store.held_batch("orders", epoch=2) is None
    assert not store.silver_batch_recorded("orders", epoch=1, batch_id=2)
    assert store.silver_totals("orders").batches == 1

    record(store, 2, "warned")

    assert store.held_batch("orders", epoch=1) is None
    assert store.silver_batch_recorded("orders", epoch=1, batch_id=2)
    assert store.silver_totals("orders").records == 6

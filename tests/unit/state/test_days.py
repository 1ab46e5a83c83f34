"""The ledger by spans of time, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.days import Published
from spark_jobs.state.store import ControlStore

DAY = datetime(2024, 5, 2, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)


def put(store: ControlStore, number: int, at: datetime, **changed: Any) -> None:
    attempt: dict[str, Any] = {
        "attempt_id": f"a{number}",
        "view": "spend",
        "tick": "t",
        "epoch": 1,
        "started_at": at - timedelta(seconds=3),
        "updated_at": at,
    }
    store.create_attempt(RefreshAttempt(**(attempt | changed)))


def test_an_attempt_belongs_to_the_span_in_which_it_ended(store: ControlStore) -> None:
    put(store, 1, DAY - timedelta(microseconds=1), status=AttemptStatus.BLOCKED)
    put(store, 2, DAY, status=AttemptStatus.PUBLISHED)
    put(store, 3, DAY, status=AttemptStatus.PUBLISHED)
    put(store, 4, NEXT - timedelta(microseconds=1), status=AttemptStatus.FAILED)
    put(store, 5, NEXT, status=AttemptStatus.SKIPPED)
    put(store, 6, DAY, status=AttemptStatus.SKIPPED, view="other")
    assert store.outcomes(start=DAY, end=NEXT) == {
        "spend": {AttemptStatus.PUBLISHED: 2, AttemptStatus.FAILED: 1},
        "other": {AttemptStatus.SKIPPED: 1},
    }


def test_verdicts_with_a_failed_expectation(store: ControlStore) -> None:
    for number, verdict in enumerate((None, {"failed": 0}, {"failed": 2}, {"failed": 1})):
        put(store, number, DAY + timedelta(minutes=number), verdict=verdict)
    put(store, 9, NEXT, verdict={"failed": 3})
    found = store.failed_verdicts(start=DAY, end=NEXT)
    assert found == [("spend", {"failed": 2}), ("spend", {"failed": 1})]


def test_publications_by_time(store: ControlStore) -> None:
    later = DAY + timedelta(hours=1)
    vector, actual = {"silver.a": {"version": 2}}, {"rows": 3}
    done = AttemptStatus.PUBLISHED
    put(store, 1, later, status=done, view="visits", vector=vector, actual=actual)
    put(store, 2, DAY, status=AttemptStatus.PUBLISHED)
    put(store, 3, DAY, status=AttemptStatus.SKIPPED)
    assert store.publications(start=DAY, end=NEXT) == [
        Published("spend", DAY, {}),
        Published("visits", later, vector, actual),
    ]

"""The evidence of verifications, on both databases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from spark_jobs.state.engine import make_engine
from spark_jobs.state.store import ControlStore
from spark_jobs.state.verifications import VerificationRecord

NOON = datetime(2024, 5, 2, 12, tzinfo=UTC)


def record(view: str = "daily", *, minutes: int = 0) -> VerificationRecord:
    return VerificationRecord(
        view=view,
        version=3,
        finding="EQUAL_WITHIN_TOLERANCE",
        detail="the table equals its SQL",
        vector={"silver.orders": {"id": "a", "version": 4}},
        rows=12,
        largest_difference=1e-12,
        sample={"by": ["user_id"], "of": 64, "buckets": [{"number": 3, "actual": 12}]},
        seconds=1.5,
        at=NOON + timedelta(minutes=minutes),
    )


def test_evidence_is_read_back_as_it_was_written_newest_first(store: ControlStore) -> None:
    written = [record(minutes=at) for at in (1, 3, 2)]
    for one in [*written, record("other", minutes=9)]:
        store.record_verification(one)

    assert store.verifications("daily") == sorted(written, key=lambda one: one.at, reverse=True)
    assert [one.view for one in store.verifications(limit=1)] == ["other"]


def test_a_database_of_the_release_before_gets_the_table(control_url: str) -> None:
    ControlStore.open(control_url).close()
    engine = make_engine(control_url)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE verifications")).close()
        connection.execute(text("UPDATE tidemark_schema SET version = 1")).close()
    engine.dispose()
    with ControlStore.open(control_url) as store:
        store.record_verification(record())
        assert len(store.verifications()) == 1

"""The control store's contract, on SQLite and on PostgreSQL."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from spark_jobs.names import TableName, TableVersion
from spark_jobs.state import attempts as attempts_module
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.batches import SilverBatch, SilverTotals
from spark_jobs.state.errors import AttemptNotFoundError, LeaseLostError, LeaseTakenError
from spark_jobs.state.progress import Heartbeat, StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now

NOW = datetime(2024, 5, 2, 12, 30, 15, 123456, tzinfo=UTC)
ORDERS = TableName.parse("silver.orders")
USERS = TableName.parse("silver.users")


def attempt(attempt_id: str = "a1", **changed: object) -> RefreshAttempt:
    first = RefreshAttempt(
        attempt_id=attempt_id,
        view="orders",
        tick="2024-05-02T12:30",
        epoch=1,
        started_at=NOW,
        updated_at=NOW,
    )
    return replace(first, **changed)  # type: ignore[arg-type]


# The ledger.


def test_an_attempt_is_read_back_as_it_was_written(store: ControlStore) -> None:
    written = attempt(
        decision="full",
        reason_code="FIRST_BUILD",
        reason="no published version",
        sequence=7,
        fingerprint="abc",
        vector={"silver.orders": {"table_id": "x", "version": 3}},
        estimate={"rows": 10},
    )
    assert store.create_attempt(written) == written
    assert store.attempt("a1") == written
    assert store.attempt("a1").started_at.tzinfo is UTC


def test_a_strategy_is_read_as_an_older_release_stored_it(store: ControlStore) -> None:
    store.create_attempt(attempt(decision="incremental", rule="kept_groups"))
    assert store.attempt("a1").rule == "aggregate_state"


def test_the_first_writer_of_an_attempt_wins(store: ControlStore) -> None:
    first = store.create_attempt(attempt(decision="full"))
    assert store.create_attempt(attempt(decision="skip")) == first


def test_sequences_rise_within_an_epoch(store: ControlStore) -> None:
    assert store.create_attempt(attempt("a1")).sequence == 1
    assert store.create_attempt(attempt("a2")).sequence == 2
    assert store.create_attempt(attempt("a3", view="others")).sequence == 1
    assert store.create_attempt(attempt("a4", epoch=2)).sequence == 1


def test_a_sequence_exceeds_what_the_log_has_seen(store: ControlStore) -> None:
    assert store.create_attempt(attempt("a1"), above=41).sequence == 42
    assert store.create_attempt(attempt("a2"), above=3).sequence == 43


def test_the_newest_attempt_comes_first_although_the_clock_was_set_back(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now()
    ahead = now + timedelta(minutes=100)
    with monkeypatch.context() as fast:
        fast.setattr(attempts_module, "utc_now", lambda: ahead)
        store.create_attempt(replace(attempt("a1"), started_at=ahead, updated_at=ahead))
        store.update_attempt("a1", status=AttemptStatus.PUBLISHED)
    store.create_attempt(replace(attempt("a2"), started_at=now, updated_at=now))
    second = store.update_attempt("a2", status=AttemptStatus.PUBLISHED)
    assert [one.attempt_id for one in store.attempts("orders")] == ["a2", "a1"]
    assert second.updated_at > store.attempt("a1").updated_at
    # Other views have times of their own.
    other = replace(attempt("a3", view="others"), started_at=now, updated_at=now)
    assert store.create_attempt(other).started_at == now


def test_an_update_changes_what_it_names_and_the_time(store: ControlStore) -> None:
    before = store.create_attempt(attempt(decision="full"))
    after = store.update_attempt(
        "a1", status=AttemptStatus.PUBLISHED, actual={"rows": 4}, published_version=12
    )
    assert after.updated_at > before.updated_at
    assert after == replace(
        before,
        status=AttemptStatus.PUBLISHED,
        actual={"rows": 4},
        published_version=12,
        updated_at=after.updated_at,
    )
    assert store.update_attempt("a1", actual=None).actual is None


def test_an_unknown_attempt_is_an_error_that_names_it(store: ControlStore) -> None:
    assert store.find_attempt("nope") is None
    for call in (lambda: store.attempt("nope"), lambda: store.update_attempt("nope", error="x")):
        with pytest.raises(AttemptNotFoundError) as missing:
            call()
        assert missing.value.attempt_id == "nope"


def test_attempts_come_newest_first_and_can_be_narrowed(store: ControlStore) -> None:
    for number, view in enumerate(["orders", "users", "orders"]):
        started = NOW + timedelta(seconds=number)
        store.create_attempt(attempt(f"a{number}", view=view, tick=view, started_at=started))
    store.update_attempt("a0", status=AttemptStatus.PUBLISHED)

    def ids(found: list[RefreshAttempt]) -> list[str]:
        return [one.attempt_id for one in found]

    assert ids(store.attempts()) == ["a2", "a1", "a0"]
    assert ids(store.attempts("orders")) == ["a2", "a0"]
    assert ids(store.attempts(tick="users")) == ["a1"]
    assert ids(store.attempts("orders", statuses=[AttemptStatus.PUBLISHED])) == ["a0"]
    assert ids(store.attempts(limit=1)) == ["a2"]


# Ticks.


def test_old_attempts_of_a_tick_are_forgotten_but_not_the_newest(store: ControlStore) -> None:
    store.create_attempt(attempt("other tick"))
    store.create_attempt(attempt("other view", tick="t", view="users"))
    for number in range(6):
        started = NOW + timedelta(days=number)
        store.create_attempt(attempt(f"a{number}", tick="t", started_at=started))
    noon = NOW + timedelta(days=3)
    assert store.forget_attempts("orders", tick="t", before=noon, keep=10) == 0
    assert store.forget_attempts("orders", tick="t", before=noon, keep=5) == 1
    assert store.forget_attempts("orders", tick="t", before=noon, keep=1) == 2
    left = [one.attempt_id for one in store.attempts()]
    assert left == ["a5", "a4", "a3", "other tick", "other view"]
    assert store.create_attempt(attempt("next")).sequence == 8


def test_the_first_pin_of_a_tick_wins(store: ControlStore) -> None:
    first, later = TableVersion("id", 3), TableVersion("id", 4)
    assert store.pin_version("t1", ORDERS, first) == first
    assert store.pin_version("t1", ORDERS, later) == first
    assert store.pin_version("t2", ORDERS, later) == later
    assert store.pins("t1") == {ORDERS: first}
    assert store.pins("t3") == {}


def test_several_tables_are_pinned_at_once_and_what_is_pinned_stays(store: ControlStore) -> None:
    first, later = TableVersion("id", 3), TableVersion("id", 4)
    store.pin_version("t1", ORDERS, first)
    assert store.pin_versions("t1", {ORDERS: later, USERS: later}) == {ORDERS: first, USERS: later}
    assert store.pins("t1") == {ORDERS: first, USERS: later}
    assert store.pin_versions("t1", {}) == {}


def test_old_ticks_are_forgotten(store: ControlStore) -> None:
    store.pin_version("t1", ORDERS, TableVersion("id", 3))
    assert store.forget_ticks(before=datetime.now(UTC) - timedelta(hours=1)) == 0
    assert store.forget_ticks(before=datetime.now(UTC) + timedelta(hours=1)) == 1
    assert store.pins("t1") == {}


# Leases and epochs.


def test_a_lease_keeps_others_out_until_it_is_released(store: ControlStore) -> None:
    with store.lease(ORDERS, owner="one", seconds=60) as held:
        with (
            pytest.raises(LeaseTakenError) as taken,
            store.lease(ORDERS, owner="two", seconds=60),
        ):
            pass
        assert (taken.value.holder, taken.value.resource) == ("one", "silver.orders")
        assert taken.value.expires_at == held.lease.expires_at
        assert store.lease_holder(ORDERS) == held.lease
    assert store.lease_holder(ORDERS) is None
    with store.lease(ORDERS, owner="two", seconds=60) as next_one:
        assert next_one.fencing > held.fencing


def test_tables_have_leases_of_their_own(store: ControlStore) -> None:
    with store.lease("a", owner="one", seconds=60), store.lease("b", owner="two", seconds=60):
        pass


def test_the_same_owner_gets_the_lease_again_and_fences_its_past(store: ControlStore) -> None:
    with store.lease(ORDERS, owner="one", seconds=60) as before:
        with store.lease(ORDERS, owner="one", seconds=60) as after:
            assert after.fencing > before.fencing
            with pytest.raises(LeaseLostError) as lost:
                before.check()
            assert lost.value.fencing == before.fencing
            after.check()
        # The one that was fenced off releases nothing that is not its own.
        with store.lease(ORDERS, owner="two", seconds=60) as other:
            pass
    assert other.fencing > after.fencing


def test_a_fenced_holder_releases_nothing(store: ControlStore) -> None:
    first = store.lease(ORDERS, owner="one", seconds=60)
    first.__enter__()
    with store.lease(ORDERS, owner="one", seconds=60) as second:
        first.__exit__(None, None, None)
        assert store.lease_holder(ORDERS) == second.lease


def test_a_lease_expires_without_renewal(store: ControlStore) -> None:
    from spark_jobs.state import leases

    with store._write() as connection:
        dead = leases.acquire(connection, "t", owner="dead", seconds=0.05)
    time.sleep(0.1)
    assert store.lease_holder("t") is None
    # Nobody took it meanwhile, so its holder may still go on.
    assert store.renew_lease(dead, seconds=0.05).expires_at > dead.expires_at
    time.sleep(0.1)
    with store.lease("t", owner="next", seconds=60), pytest.raises(LeaseLostError):
        store.renew_lease(dead, seconds=60)


def test_a_lease_that_lies_ahead_because_a_clock_was_set_back_has_expired(
    store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.state import leases

    def at(minutes: float) -> None:
        now = utc_now() + timedelta(minutes=minutes)
        monkeypatch.setattr(leases, "database_now", lambda _: now)

    at(100)
    with store._write() as connection:
        held = leases.acquire(connection, "t", owner="one", seconds=60)
    # A small correction changes nothing.
    at(99.5)
    with pytest.raises(LeaseTakenError), store.lease("t", owner="two", seconds=60):
        pass
    # An owner that renews it has it, a dead one does not.
    at(50)
    store.renew_lease(held, seconds=60)
    assert store.lease_holder("t") is not None
    at(0)
    assert store.lease_holder("t") is None
    with store.lease("t", owner="two", seconds=60) as taken:
        assert taken.lease.fencing > held.fencing


def test_a_held_lease_renews_itself(store: ControlStore) -> None:
    with store.lease("t", owner="one", seconds=0.6) as held:
        first = held.lease.expires_at
        time.sleep(0.9)
        assert held.lease.expires_at > first
        with pytest.raises(LeaseTakenError), store.lease("t", owner="two", seconds=60):
            pass


def test_a_lease_is_released_when_the_work_fails(store: ControlStore) -> None:
    with pytest.raises(ZeroDivisionError), store.lease("t", owner="one", seconds=60):
        raise ZeroDivisionError
    assert store.lease_holder("t") is None


def test_epochs_start_at_one_and_only_rise(store: ControlStore) -> None:
    assert store.epoch(ORDERS) == 1
    assert store.bump_epoch(ORDERS, reason="new checkpoint") == 2
    assert store.bump_epoch(ORDERS, reason="ledger was lost", above=40) == 41
    assert store.epoch("silver.orders") == 41
    assert store.epoch("silver.users") == 1


# Silver batches and streams.


def batch(batch_id: int, **counts: int) -> SilverBatch:
    return SilverBatch(silver="orders", epoch=1, batch_id=batch_id, at=NOW, **counts)  # type: ignore[arg-type]


def test_a_batch_that_runs_twice_is_counted_once(store: ControlStore) -> None:
    store.record_silver_batch(batch(0, records=5, applied=3, quarantined=2))
    store.record_silver_batch(batch(1, records=4, applied=1, superseded=1, duplicate=1, ignored=1))
    store.record_silver_batch(
        batch(1, records=4, applied=2, superseded=1, duplicate=1, last_bronze_version=9)
    )
    assert store.silver_totals("orders") == SilverTotals(
        silver="orders",
        batches=2,
        records=9,
        applied=5,
        superseded=1,
        quarantined=2,
        duplicate=1,
        ignored=0,
        last_bronze_version=9,
        last_at=NOW,
    )
    assert store.silver_totals("orders").accounted == 9


def test_totals_distinguish_epochs(store: ControlStore) -> None:
    store.record_silver_batch(batch(0, records=5, applied=5))
    store.record_silver_batch(replace(batch(0, records=7, applied=6), epoch=2))
    assert store.silver_totals("orders", epoch=2).records == 7
    both = store.silver_totals("orders")
    assert (both.records, both.accounted) == (12, 11)
    assert store.silver_totals("users") == SilverTotals(silver="users")


def test_progress_is_one_row_per_query(store: ControlStore) -> None:
    first = StreamProgress(query="bronze.orders", batch_id=1, records=10, at=NOW, heartbeat_at=NOW)
    second = replace(first, batch_id=2, end_offsets={"orders": {"0": 12}}, lag_records=3)
    other = replace(first, query="silver.orders", state=StreamState.FAILED, error="disk full")
    for entry in (first, other, second):
        store.record_progress(entry)
    assert store.progress() == [second, other]


def test_a_query_that_runs_no_more_is_forgotten(store: ControlStore) -> None:
    for query in ("gold.orders", "gold.users"):
        store.record_heartbeat(query, at=NOW)
    store.forget_query("gold.users")
    assert [one.query for one in store.progress()] == ["gold.orders"]


def test_a_heartbeat_leaves_the_last_batch_as_it_was(store: ControlStore) -> None:
    later = NOW + timedelta(seconds=5)
    store.record_heartbeat("q", at=NOW, state=StreamState.STARTING)
    (first,) = store.progress()
    assert (first.batch_id, first.state, first.at) == (-1, StreamState.STARTING, NOW)
    store.record_progress(replace(first, batch_id=4, records=9, state=StreamState.RUNNING))
    store.record_heartbeat("q", at=later, state=StreamState.FAILED, error="gone")
    (last,) = store.progress()
    assert (last.batch_id, last.records, last.at) == (4, 9, NOW)
    assert (last.heartbeat_at, last.state, last.error) == (later, StreamState.FAILED, "gone")


def test_reports_are_recorded_together_or_not_at_all(store: ControlStore) -> None:
    first = StreamProgress(query="a", batch_id=1, records=10, at=NOW, heartbeat_at=NOW)
    beat = Heartbeat(query="b", at=NOW, state=StreamState.WAITING, error="no topic")
    store.record_reports([first, beat])
    assert [(one.query, one.batch_id, one.state, one.error) for one in store.progress()] == [
        ("a", 1, StreamState.RUNNING, None),
        ("b", -1, StreamState.WAITING, "no topic"),
    ]
    before = store.progress()
    with pytest.raises(Exception, match="has no time zone"):
        store.record_reports(
            [replace(first, batch_id=2), replace(beat, at=NOW.replace(tzinfo=None))]
        )
    assert store.progress() == before


@pytest.mark.parametrize(
    ("state", "age", "stale"),
    [
        (StreamState.RUNNING, 59, False),
        (StreamState.RUNNING, 61, True),
        (StreamState.FAILED, 61, True),
        (StreamState.STOPPED, 999, False),
        # The host's clock was set back.
        (StreamState.RUNNING, -59, False),
        (StreamState.RUNNING, -61, True),
    ],
)
def test_staleness_is_silence_of_what_should_run(
    state: StreamState, age: int, *, stale: bool
) -> None:
    entry = StreamProgress(query="q", batch_id=0, records=0, at=NOW, heartbeat_at=NOW, state=state)
    now = NOW + timedelta(seconds=age)
    minute = timedelta(minutes=1)
    assert entry.stale(now=now, after=minute) is stale
    found = entry.health(now=now, after=minute, on_purpose=True)
    assert found == ("silent" if stale else state.value)


# Times.


def test_times_of_other_zones_are_the_same_instants(store: ControlStore) -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=-7)))
    store.record_heartbeat("q", at=elsewhere)
    (entry,) = store.progress()
    assert (entry.at, entry.at.tzinfo) == (NOW, UTC)


def test_a_time_without_a_zone_is_refused(store: ControlStore) -> None:
    with pytest.raises(Exception, match="has no time zone"):
        store.record_heartbeat("q", at=NOW.replace(tzinfo=None))
    assert store.progress() == []

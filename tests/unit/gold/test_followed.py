"""When a continuous view is due, and for how long it is left alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from spark_jobs.gold.continuous.view import (
    DECISION_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    FollowedView,
)
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.decision import Full, Reason, ReasonCode, Skip
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.vector import VersionVector
from spark_jobs.state.progress import StreamState

ORDERS, OWN = TableName.parse("silver.orders"), TableName.parse("gold.totals")


def view(*, reads_clock: bool = False) -> FollowedView:
    entry = GoldEntry(
        name="totals",
        description="A view.",
        owner="tests",
        refresh="continuous",
        sql="",
        query="",
        inputs=("silver.orders",),
        columns=(),
        fingerprint="f",
        deterministic=True,
        reads_clock=reads_clock,
        file="sql/gold/totals.sql",
        tier=0,
    )
    return FollowedView(entry, clock_seconds=60)


def versions(orders: int | None, own: int | None) -> dict[TableName, TableVersion | None]:
    return {
        table: None if version is None else TableVersion(table.name, version)
        for table, version in ((ORDERS, orders), (OWN, own))
    }


def plan(orders: int | None, decision: Full | Skip) -> RefreshPlan:
    pinned = {} if orders is None else {ORDERS: TableVersion(ORDERS.name, orders)}
    return RefreshPlan(
        view="totals",
        tick="continuous",
        attempt_id="",
        fingerprint="f",
        decision=decision,
        vector=VersionVector(pinned),
        changes=(),
        clock=datetime(2026, 1, 1, tzinfo=UTC),
    )


UNCHANGED = Skip(Reason(ReasonCode.NO_UPSTREAM_CHANGE, "no upstream change"))
MISSING = Skip(Reason(ReasonCode.INPUT_MISSING, "no table at silver.orders"))
NO_COMMIT = Skip(Reason(ReasonCode.WAITS_FOR_TRANSACTION, "no commit of database shop"))
FULL = Full(Reason(ReasonCode.INPUT_CHANGED_NO_RULE, "no rule"))


@pytest.mark.parametrize(
    ("orders", "own", "due"), [(3, 7, False), (4, 7, True), (3, 8, True), (None, 7, True)]
)
def test_it_is_due_when_an_input_or_its_own_table_moved(
    orders: int | None, own: int, *, due: bool
) -> None:
    one = view()
    assert one.due(versions(3, 7), now=0)
    one.skipped(plan(3, UNCHANGED), versions(3, 7), now=0)
    assert one.due(versions(orders, own), now=1e6) is due
    assert (one.state, one.version) == (StreamState.RUNNING, 7)


def test_versions_newer_than_a_skipped_plan_make_a_view_due() -> None:
    one = view()
    one.skipped(plan(3, UNCHANGED), versions(4, 7), now=0)
    assert one.due(versions(4, 7), now=0)


def test_a_missing_input_is_waited_for() -> None:
    one = view()
    one.skipped(plan(None, MISSING), versions(None, None), now=0)
    assert (one.state, one.error) == (StreamState.WAITING, "no table at silver.orders")
    assert not one.due(versions(None, None), now=0)
    assert one.due(versions(0, None), now=0)


def test_a_commit_is_waited_for_although_no_version_changes() -> None:
    one = view()
    one.skipped(plan(3, NO_COMMIT), versions(3, 7), now=0)
    assert (one.state, one.error) == (StreamState.WAITING, "no commit of database shop")
    assert not one.due(versions(3, 7), now=0.9)
    assert one.due(versions(3, 7), now=1)
    one.skipped(plan(3, UNCHANGED), versions(3, 7), now=1)
    assert not one.due(versions(3, 7), now=1e6)


@pytest.mark.parametrize(
    "code", [ReasonCode.VIEW_PINNED, ReasonCode.REPLAY_PUBLISHES, ReasonCode.WAITS_FOR_PERSON]
)
def test_a_view_that_people_stopped_is_asked_again_although_no_version_changes(
    code: ReasonCode,
) -> None:
    one = view()
    one.skipped(plan(3, Skip(Reason(code, "a person decides"))), versions(3, 7), now=0)
    assert not one.due(versions(3, 7), now=DECISION_PAUSE_SECONDS - 0.1)
    assert one.due(versions(3, 7), now=DECISION_PAUSE_SECONDS)


def test_a_view_may_fail_for_days() -> None:
    one = view()
    one.failures = 5000
    one.failed("no disk", now=0)
    assert one.next_try == LONGEST_PAUSE_SECONDS


def test_pauses_double_up_to_a_minute_and_end_with_success() -> None:
    one, now, pauses = view(), 0.0, []
    for _ in range(8):
        one.failed("no disk", now=now)
        pauses.append(one.next_try - now)
        assert not one.due(versions(9, 9), now=one.next_try - 0.1)
        now = one.next_try
        assert one.due(versions(3, 7), now=now)
    assert pauses == [2, 4, 8, 16, 32, *[LONGEST_PAUSE_SECONDS] * 3]
    one.skipped(plan(3, UNCHANGED), versions(3, 7), now=now)
    one.failed("no disk", now=now)
    assert one.next_try - now == 2


def test_a_blocked_view_is_due_when_its_inputs_move_and_its_pause_is_over() -> None:
    one = view()
    one.blocked(plan(3, FULL), TableVersion(OWN.name, 7), "[GATE_BLOCKED]", now=0)
    one.blocked(plan(4, FULL), TableVersion(OWN.name, 7), "[GATE_BLOCKED]", now=10)
    assert not one.due(versions(4, 7), now=1e6)
    assert not one.due(versions(5, 7), now=13.9)
    assert one.due(versions(5, 7), now=14)
    assert one.progress().state is StreamState.BLOCKED
    assert one.progress().error == "[GATE_BLOCKED]"


def test_the_clock_alone_makes_a_view_due_that_reads_it() -> None:
    timed, other = view(reads_clock=True), view()
    for one in (timed, other):
        one.skipped(plan(3, UNCHANGED), versions(3, 7), now=100)
    assert [timed.due(versions(3, 7), now=now) for now in (159, 160)] == [False, True]
    assert not other.due(versions(3, 7), now=1e6)

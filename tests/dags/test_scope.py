"""The rule that names a run's tick, for every kind of run that Airflow makes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from airflow.utils.types import DagRunType

from spark_jobs.orchestration.scope import RunKind, RunScope, run_scope
from spark_jobs.planning.ranges import TimeRange

START = datetime(2026, 1, 1, 10, tzinfo=UTC)
END = datetime(2026, 1, 1, 10, 15, tzinfo=UTC)


def test_every_kind_of_run_that_airflow_knows_has_a_rule() -> None:
    assert {kind.value for kind in RunKind} == {kind.value for kind in DagRunType}


@pytest.mark.parametrize("kind", [RunKind.SCHEDULED, RunKind.BACKFILL])
def test_runs_of_one_interval_share_its_end_as_their_tick(kind: RunKind) -> None:
    berlin = END.astimezone(timezone(timedelta(hours=1)))
    scopes = {
        run_scope(kind=kind, run_id=run_id, data_interval_end=end).tick
        for run_id, end in (("a", END), ("b", berlin))
    }
    assert scopes == {"2026-01-01T10:15:00Z"}


@pytest.mark.parametrize("kind", sorted(set(RunKind) - {RunKind.SCHEDULED, RunKind.BACKFILL}))
@pytest.mark.parametrize("end", [END, None])
def test_any_other_run_is_a_tick_of_its_own(kind: RunKind, end: datetime | None) -> None:
    scope = run_scope(kind=kind, run_id="manual__1", data_interval_end=end)
    assert scope == RunScope(tick="manual__1", asked=kind is RunKind.MANUAL)


def test_a_scheduled_run_without_an_interval_is_a_tick_of_its_own() -> None:
    scope = run_scope(kind=RunKind.SCHEDULED, run_id="scheduled__1", data_interval_end=None)
    assert scope.tick == "scheduled__1"


def test_a_cleared_run_asks_for_the_versions_of_now() -> None:
    scopes = [
        run_scope(kind=RunKind.SCHEDULED, run_id="a", data_interval_end=END, clear_number=n)
        for n in range(3)
    ]
    assert [one.asked for one in scopes] == [False, True, True], "a person cleared it"
    assert [one.tick for one in scopes] == [
        "2026-01-01T10:15:00Z",
        "2026-01-01T10:15:00Z+1",
        "2026-01-01T10:15:00Z+2",
    ]


def test_a_backfill_recomputes_its_interval_and_others_all_when_asked_to() -> None:
    found = {
        kind: run_scope(kind=kind, run_id="a", data_interval_start=START, data_interval_end=END)
        for kind in RunKind
    }
    ranges = {kind: scope.time for kind, scope in found.items() if scope.time is not None}
    assert ranges == {RunKind.BACKFILL: TimeRange(START, END)}
    assert not any(scope.force for scope in found.values())
    assert run_scope(kind=RunKind.BACKFILL, run_id="a", data_interval_end=None).force
    assert run_scope(kind=RunKind.MANUAL, run_id="a", data_interval_end=END, force=True).force

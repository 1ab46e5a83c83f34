"""Incidents: opened once, counted, repeated while they last, and ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from spark_jobs.state.incidents import Incident, fault_of, new_incident_id, open_incident
from spark_jobs.state.store import ControlStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(hours=24)


@pytest.fixture
def failed(store: ControlStore) -> Callable[..., tuple[Incident, bool]]:
    """A task fails so many minutes after noon."""

    def fail(minutes: float = 0, message: str = "broken", **changed: str) -> tuple[Incident, bool]:
        at = NOON + timedelta(minutes=minutes)
        failure = Incident(
            incident_id=new_incident_id(),
            dag_id="gold__spend",
            task_id="stage",
            fault=fault_of("QUERY_FAILED", message),
            table="gold.spend",
            condition="QUERY_FAILED",
            message=message,
            runbook="gold-refresh",
            opened_at=at,
            last_at=at,
            times=1,
            told_at=at,
        )
        return store.open_incident(replace(failure, **changed), again_after=DAY)

    return fail


def test_the_same_failure_is_sent_once_and_counted(store: ControlStore, failed) -> None:
    first, told = failed(0, "3 of 7 rows do not fit")
    assert told
    for minutes in (15, 30):
        again, told = failed(minutes, f"{minutes} of 70 rows do not fit")
        assert not told
    assert (again.incident_id, again.times) == (first.incident_id, 3)
    assert (again.opened_at, again.last_at) == (NOON, NOON + timedelta(minutes=30))
    assert again.message == "30 of 70 rows do not fit"
    assert store.incidents() == [again]


@pytest.mark.parametrize(
    "other",
    [{"message": "something else"}, {"task_id": "audit"}, {"dag_id": "gold__other"}],
    ids=lambda one: next(iter(one)),
)
def test_a_different_failure_is_sent_separately(store: ControlStore, failed, other) -> None:
    failed()
    _, told = failed(1, **other)
    assert told
    assert len(store.incidents(open_only=True)) == 2


def test_a_lasting_failure_is_sent_again(failed) -> None:
    told = [failed(60 * hours)[1] for hours in (0, 23.9, 24, 30, 48)]
    assert told == [True, False, True, False, True]


def test_its_end_is_noted_once_and_the_next_failure_is_a_new_one(
    store: ControlStore, failed
) -> None:
    first, _ = failed()
    failed(5, dag_id="gold__other")
    failed(10)
    end = NOON + timedelta(minutes=20)
    assert store.has_open_incident("gold__spend")
    (ended,) = store.resolve_incidents("gold__spend", now=end)
    assert (ended.incident_id, ended.times, ended.resolved_at) == (first.incident_id, 2, end)
    assert store.resolve_incidents("gold__spend", now=end) == []
    assert not store.has_open_incident("gold__spend")
    assert store.has_open_incident("gold__other")
    later, told = failed(30)
    assert told
    assert later.incident_id != first.incident_id
    assert [one.resolved_at for one in store.incidents()] == [None, None, end]


def test_of_one_task_only_its_own_end(store: ControlStore, failed) -> None:
    failed(task_id="watch")
    failed(task_id="page")
    (ended,) = store.resolve_incidents("gold__spend", task_id="page", now=NOON)
    assert ended.task_id == "page"
    assert [one.task_id for one in store.incidents(open_only=True)] == ["watch"]


def test_those_that_ended_long_ago_are_forgotten(store: ControlStore, failed) -> None:
    failed()
    store.resolve_incidents("gold__spend", now=NOON)
    failed(1)
    assert store.trim(before=NOON + timedelta(hours=1)).incidents == 1
    assert [one.resolved_at for one in store.incidents()] == [None]


def test_tasks_that_fail_at_the_same_moment_share_an_incident(store: ControlStore) -> None:
    def failure() -> Incident:
        return Incident(
            incident_id=new_incident_id(),
            dag_id="gold__spend",
            task_id="stage",
            fault="f",
            table=None,
            condition="QUERY_FAILED",
            message="broken",
            runbook="gold-refresh",
            opened_at=NOON,
            last_at=NOON,
            times=1,
            told_at=NOON,
        )

    told: list[bool] = []
    second = Thread(
        target=lambda: told.append(store.open_incident(failure(), again_after=DAY)[1]), daemon=True
    )
    with store._write() as connection:
        assert open_incident(connection, failure(), again_after=DAY)[1]
        second.start()
        second.join(0.5)
        assert told == [], "it waits for the first"
    second.join(30)
    assert told == [False]
    (incident,) = store.incidents()
    assert incident.times == 2

"""Starts that are spread within each period: even, stable, and on aligned intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pendulum
import pytest
from airflow.sdk import CronDataIntervalTimetable
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import DataInterval, TimeRestriction

from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.orchestration.airflow import build_dag
from spark_jobs.orchestration.blueprint import (
    LONGEST_SPREAD,
    blueprints,
    start_delays,
)
from spark_jobs.orchestration.staggered import StaggeredTimetable

DELAY = timedelta(minutes=3)
TIMETABLE = StaggeredTimetable("*/15 * * * *", delay=DELAY)
NOON = pendulum.datetime(2026, 1, 1, 12, tz="UTC")
ANY = TimeRestriction(earliest=None, latest=None, catchup=True)


def views(project, periods: list[int], **changes: object):
    entry = project.compile().gold["order_totals"]
    return [
        entry.model_copy(update={"name": f"v{n}", "every_seconds": period, **changes})
        for n, period in enumerate(periods)
    ]


def test_an_interval_stays_aligned_and_its_run_starts_later() -> None:
    last = DataInterval(start=NOON - timedelta(minutes=15), end=NOON)
    info = TIMETABLE.next_dagrun_info(last_automated_data_interval=last, restriction=ANY)
    assert info.data_interval == DataInterval(start=NOON, end=NOON + timedelta(minutes=15))
    assert info.run_after == NOON + timedelta(minutes=18)
    assert TIMETABLE.infer_manual_data_interval(run_after=NOON + DELAY).end == NOON
    assert TIMETABLE.periodic, "so that a range can be backfilled"


def test_a_timetable_is_read_again_as_it_was_written() -> None:
    again = StaggeredTimetable.deserialize(TIMETABLE.serialize())
    assert again.serialize() == TIMETABLE.serialize()


def test_starts_are_even_and_none_is_later_than_half_a_period(project) -> None:
    delays = start_delays(views(project, [900] * 10))
    assert sorted(delays.values()) == [45 * n for n in range(10)]
    assert delays == start_delays(views(project, [900] * 10)[::-1])
    mixed = start_delays(views(project, [300, 900, 86_400, 60]))
    assert mixed["v3"] == 0
    assert mixed["v0"] < 150
    assert mixed["v2"] < LONGEST_SPREAD
    assert start_delays(views(project, [900], refresh=RefreshPolicy.CONTINUOUS)) == {}
    # Whoever writes a schedule means that minute.
    by_clock = views(project, [900])
    by_clock[0] = by_clock[0].model_copy(update={"every_seconds": None, "schedule": "30 6 * * *"})
    assert start_delays(by_clock) == {}


def test_a_view_starts_after_those_that_it_reads(project) -> None:
    first, second = views(project, [900, 900])
    delays = start_delays([first.model_copy(update={"tier": 1}), second])
    assert delays["v1"] < delays["v0"]


@pytest.mark.parametrize("stagger", [True, False])
def test_airflow_keeps_the_timetable(project, stagger: bool) -> None:
    manifest = project.compile()
    entries = {one.name: one for one in views(project, [900, 900])}
    made = blueprints(manifest.model_copy(update={"gold": entries}), own_timetable=stagger)
    late = max(made, key=lambda one: one.delay_seconds)
    dag = build_dag(late, project.settings)
    kept = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    assert isinstance(kept, StaggeredTimetable) == stagger
    assert isinstance(dag.timetable, CronDataIntervalTimetable) != stagger
    assert ("after the end of each interval" in late.doc_md) == stagger
    start = datetime(2026, 1, 1, tzinfo=UTC)
    info = kept.next_dagrun_info(
        last_automated_data_interval=None,
        restriction=TimeRestriction(pendulum.instance(start), None, catchup=True),
    )
    assert info.run_after - info.data_interval.end == timedelta(seconds=late.delay_seconds)

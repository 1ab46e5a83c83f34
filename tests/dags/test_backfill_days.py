"""Backfills of views that are refreshed often: whole days, each once, as Airflow makes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from airflow.dag_processing.bundles.manager import DagBundlesManager
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
from airflow.models.backfill import Backfill, ReprocessBehavior, _create_backfill
from airflow.models.dagrun import DagRun
from airflow.sdk.timezone import utcnow
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.interval import CronDataIntervalTimetable
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy import select

from spark_jobs.graph.manifest import Column
from spark_jobs.orchestration.airflow import build_dag
from spark_jobs.orchestration.blueprint import blueprint
from spark_jobs.orchestration.staggered import StaggeredTimetable

JULY, SEPTEMBER = datetime(2025, 7, 1, tzinfo=UTC), datetime(2025, 9, 30, tzinfo=UTC)
DAG_ID = "gold__order_totals"


def timed(project, kind: str = "timestamp", **changes: Any):
    """The view with a time column."""
    revenue = Column(name="revenue", type="decimal(12,2)")
    columns = (Column(name="at", type=kind), revenue)
    return project.compile(columns=columns, grain=("at",), **changes).gold["order_totals"]


def runs_between(entry, settings, first: datetime, last: datetime, **options: Any) -> list[Any]:
    """The runs of a backfill, as the scheduler reads the DAG."""
    dag = build_dag(blueprint(entry, **options), settings)
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    return list(again.iter_dagrun_infos_between(first, last))


@pytest.mark.parametrize("kind", ["date", "timestamp"])
@pytest.mark.parametrize("delay", [0, 180])
def test_three_months_of_a_view_of_every_15_minutes_are_92_runs(project, kind, delay) -> None:
    runs = runs_between(timed(project, kind), project.settings, JULY, SEPTEMBER, delay=delay)
    assert len(runs) == 92
    spans = [one.data_interval for one in runs]
    assert all(one.end - one.start == timedelta(days=1) for one in spans)
    assert all(one.end == two.start for one, two in pairwise(spans))
    assert (spans[0].start, spans[-1].start) == (JULY, SEPTEMBER)


def test_a_range_within_a_day_takes_the_whole_day(project) -> None:
    noon = JULY.replace(hour=12)
    (run,) = runs_between(timed(project), project.settings, noon, noon + timedelta(hours=3))
    assert run.data_interval == (JULY, JULY + timedelta(days=1))


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"every_seconds": 86_400}, 92),
        ({"every_seconds": 604_800}, 13),
        ({"every_seconds": None, "schedule": "30 6 * * 1-5", "time_zone": "Europe/Berlin"}, 65),
        ({"every_seconds": None, "schedule": "0 9,17 * * *", "time_zone": "Europe/Berlin"}, 92),
    ],
)
def test_intervals_of_a_day_or_more_stay(project, changes: dict[str, Any], count: int) -> None:
    entry = timed(project, **changes)
    assert len(runs_between(entry, project.settings, JULY, SEPTEMBER)) == count
    by_days = blueprint(entry).backfill_days
    assert by_days == ("0 9,17" in str(changes.get("schedule")))
    assert ("one run for each that has ended" in blueprint(entry).doc_md) == by_days


def test_an_airflow_that_does_not_know_the_timetable_keeps_to_its_own(project) -> None:
    entry = timed(project)
    dag = build_dag(blueprint(entry, own_timetable=False), project.settings)
    kept = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    assert type(kept) is CronDataIntervalTimetable


def test_a_timetable_of_an_older_release_is_deserialized() -> None:
    old = StaggeredTimetable.deserialize({"expression": "*/15 * * * *", "delay_seconds": 60.0})
    assert old.serialize()["backfill_days"] is False


@pytest.mark.usefixtures("airflow_database")
@pytest.mark.filterwarnings("default")
def test_airflow_makes_a_run_of_each_day_beside_those_of_the_schedule(project, dag_file) -> None:
    timed(project)
    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=str(dag_file))
    sync_bag_to_db(bag, "dags-folder", None)
    dag = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags[DAG_ID]))
    with create_session() as session:
        dag.create_dagrun(
            run_id="scheduled__first-of-july",
            logical_date=JULY,
            data_interval=(JULY, JULY + timedelta(minutes=15)),
            run_after=JULY + timedelta(minutes=15),
            run_type=DagRunType.SCHEDULED,
            triggered_by=DagRunTriggeredByType.TIMETABLE,
            state=DagRunState.SUCCESS,
            session=session,
        )

    def backfill(last: datetime) -> list[tuple[datetime, datetime]]:
        made = _create_backfill(
            dag_id=DAG_ID,
            from_date=JULY,
            to_date=last,
            max_active_runs=1,
            reverse=False,
            dag_run_conf=None,
            triggering_user_name="oncall",
            reprocess_behavior=ReprocessBehavior.NONE,
        )
        with create_session() as session:
            session.get(Backfill, made.id).completed_at = utcnow()
            query = select(DagRun).where(DagRun.backfill_id == made.id).order_by(DagRun.id)
            return [
                (one.data_interval_start, one.data_interval_end) for one in session.scalars(query)
            ]

    days = [JULY + timedelta(days=number) for number in range(4)]
    assert backfill(days[1]) == [(days[0], days[1]), (days[1], days[2])]
    assert backfill(days[2]) == [(days[2], days[3])], "missing runs only"

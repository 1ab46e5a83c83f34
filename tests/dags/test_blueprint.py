"""Blueprints: what the manifest says becomes plain data about DAGs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pendulum
import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction

from spark_jobs.definitions.schedules import DAY, HOUR, MINUTE, WEEK, cron_of
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.orchestration.airflow import build_dag
from spark_jobs.orchestration.blueprint import Step, blueprint, blueprints
from spark_jobs.orchestration.errors import PeriodUnsupportedError
from spark_jobs.sections import ExecutorMode

GOLDEN = Path(__file__).parents[1] / "golden/blueprint.json"


def test_the_blueprint_of_a_view_is_as_written_down(project) -> None:
    manifest = project.compile(downstream=("vip_customers",), tags=("shop", "finance"))
    entry = manifest.gold["order_totals"]
    made = {
        mode.value: json.loads(json.dumps(asdict(blueprint(entry, mode)))) for mode in ExecutorMode
    }
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(json.dumps(made, indent=2) + "\n")
    assert made == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize(
    ("seconds", "cron"),
    [
        (MINUTE, "* * * * *"),
        (5 * MINUTE, "*/5 * * * *"),
        (15 * MINUTE, "*/15 * * * *"),
        (HOUR, "0 * * * *"),
        (6 * HOUR, "0 */6 * * *"),
        (DAY, "0 0 * * *"),
        (WEEK, "0 0 * * 1"),
    ],
)
def test_a_period_is_an_aligned_cron_expression(seconds: int, cron: str) -> None:
    assert cron_of(seconds) == cron


@pytest.mark.parametrize("seconds", [0, -60, 1, 30, 90, 7 * MINUTE, 45 * MINUTE, 5 * HOUR, 2 * DAY])
def test_a_period_whose_intervals_would_not_align_is_refused(project, seconds: int) -> None:
    manifest = project.compile(every_seconds=seconds)
    with pytest.raises(PeriodUnsupportedError) as caught:
        blueprints(manifest)
    assert caught.value.view == "order_totals"
    assert caught.value.seconds == seconds
    assert str(caught.value.location) == "sql/gold/order_totals.sql"


@pytest.mark.parametrize("policy", [RefreshPolicy.BULK, RefreshPolicy.CONTINUOUS])
def test_a_view_that_is_not_refreshed_by_schedule_has_none(project, policy) -> None:
    manifest = project.compile(refresh=policy, every_seconds=None)
    assert blueprint(manifest.gold["order_totals"]).cron is None


@pytest.mark.parametrize("policy", [RefreshPolicy.MICRO_BATCH, RefreshPolicy.BULK])
def test_a_schedule_follows_the_clock_of_its_time_zone(project, policy) -> None:
    manifest = project.compile(
        refresh=policy, every_seconds=None, schedule="30 6 * * *", time_zone="Europe/Berlin"
    )
    found = blueprint(manifest.gold["order_totals"])
    assert (found.cron, found.time_zone, found.delay_seconds) == (
        "30 6 * * *",
        "Europe/Berlin",
        0,
    )
    assert "`30 6 * * *`, Europe/Berlin" in found.doc_md
    # Clocks go forward on 29 March 2026 and back on 25 October: it stays 06:30 there.
    for day, hours in (((2026, 3, 27), (5, 4)), ((2026, 10, 23), (4, 5))):
        runs = starts_after(datetime(*day, tzinfo=UTC), build_dag(found, project.settings), 2)
        assert [one.hour for one in runs] == list(hours)
        assert {one.minute for one in runs} == {30}


def test_an_hourly_schedule_neither_skips_nor_repeats_an_hour_when_clocks_change(project) -> None:
    manifest = project.compile(every_seconds=None, schedule="0 * * * *", time_zone="Europe/Berlin")
    dag = build_dag(blueprint(manifest.gold["order_totals"]), project.settings)
    for day in ((2026, 3, 28, 22), (2026, 10, 24, 22)):
        runs = starts_after(datetime(*day, tzinfo=UTC), dag, 6)
        apart = {(later - earlier).total_seconds() for earlier, later in pairwise(runs)}
        assert apart == {3600}


def test_an_on_demand_view_may_have_a_period_too(project) -> None:
    manifest = project.compile(refresh=RefreshPolicy.BULK, every_seconds=86_400)
    assert blueprint(manifest.gold["order_totals"]).cron == "0 0 * * *"


def starts_after(moment: datetime, dag: DAG, count: int) -> list[datetime]:
    """When the DAG's next runs start, as the scheduler asks for them."""
    timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    within = TimeRestriction(earliest=pendulum.instance(moment), latest=None, catchup=True)
    found, last = [], None
    while len(found) < count:
        info = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=within)
        last = info.data_interval
        found.append(info.run_after)
    return found


def test_a_continuous_view_has_a_page_lineage_and_a_button(project) -> None:
    manifest = project.compile(refresh=RefreshPolicy.CONTINUOUS, every_seconds=None)
    scheduled = blueprint(project.compile().gold["order_totals"])
    found = blueprint(manifest.gold["order_totals"])
    assert (found.dag_id, found.inlets, found.outlet, found.tasks) == (
        scheduled.dag_id,
        scheduled.inlets,
        scheduled.outlet,
        scheduled.tasks,
    )
    assert "refresh:continuous" in found.tags
    assert "By the streaming application, as soon as its inputs change" in found.doc_md


def test_a_view_is_compared_as_often_as_it_declares(project) -> None:
    refresh, compared = blueprints(project.compile(verify_seconds=DAY))
    assert (compared.dag_id, compared.cron) == ("verify__order_totals", "0 0 * * *")
    assert [one.step for one in compared.tasks] == [Step.VERIFY]
    assert compared.inlets == (refresh.outlet,)
    assert compared.outlet is None
    with pytest.raises(PeriodUnsupportedError):
        blueprints(project.compile(verify_seconds=7 * MINUTE))

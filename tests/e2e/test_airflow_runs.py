"""Airflow as users meet it: its REST interface, real schedules, real roles, a real red run.

What a run does is tested in ``tests/dags``; here are the scheduler, the servers and the people.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import httpx
import psutil
import pytest

from tests.e2e import doors
from tests.e2e.airflow_world import (
    DAG,
    DAYS,
    ENDED,
    RELEASE,
    REPLAY,
    ROLLBACK,
    Airflow,
    all_succeed,
)
from tests.e2e.running import kill

# Events of each asset.
STORM = 30

pytestmark = pytest.mark.timeout(600)


def test_scheduled_runs_publish_emit_an_event_and_then_skip(airflow: Airflow) -> None:
    assert airflow.get("/importErrors")["import_errors"] == []
    dags = {dag["dag_id"] for dag in airflow.get("/dags")["dags"]}
    maintenance = {"ops__maintenance", "ops__logs", "ops__reconcile", "ops__stream_watch"}
    assert dags == {DAG, DAYS, REPLAY, ROLLBACK, RELEASE} | maintenance
    pools = {one["name"] for one in airflow.get("/pools")["pools"]}
    assert pools == {"default_pool", "live", "replay", "maintenance"}
    published = airflow.run_where(all_succeed)
    assert published["run_type"] == "scheduled"
    assert airflow.totals()["ada"] == Decimal("5.00")
    airflow.storm(STORM)
    airflow.run_where(lambda tasks: set(tasks.values()) == {"skipped"})
    types = Counter(run["run_type"] for run in airflow.get("/dags/~/dagRuns")["dag_runs"])
    assert types["scheduled"] > 1
    assert types["asset_triggered"] == 0, "an event of an asset is no reason to compute"
    (event,) = airflow.get("/assets/events", source_run_id=published["dag_run_id"])["asset_events"]
    assert event["name"] == "gold.order_totals"
    assert set(event["extra"]) >= {"version", "rows", "attempt"}


def test_a_failing_critical_expectation_is_a_red_run_that_names_it(airflow: Airflow) -> None:
    airflow.run_where(all_succeed)
    before = airflow.totals()
    airflow.order("bob", "-1.00")
    airflow.trigger("oncall", DAG, {})
    red = airflow.run_where(lambda tasks: tasks.get("audit") == "failed")
    assert red["state"] == "failed"
    assert airflow.tasks(red)["publish"] == "upstream_failed"
    log = airflow.log(red, "audit")
    assert "GATE_BLOCKED" in log
    assert "expect_column_values_to_be_between" in log
    assert "/_staging/order_totals/" in log, "where the rows lie that were computed"
    assert airflow.totals() == before

    # No newer refresh than the one that is looked at while somebody decides.
    airflow.pause_between_runs(DAG)
    asked = {"view": "order_totals", "reason": "A refund that came before its order"}
    released = airflow.trigger("oncall", RELEASE, asked)
    airflow.approve(released)
    assert airflow.ended(released)["state"] == "success", airflow.tasks(released)
    assert airflow.totals()["bob"] == Decimal("-1.00")
    assert "past the gate" in airflow.log(released, "release")
    airflow.pause(DAG, paused=False)

    airflow.order("bob", "3.00")
    airflow.trigger("oncall", DAG, {})
    airflow.wait(lambda: airflow.totals()["bob"] == Decimal("2.00"))


def test_who_reads_may_not_trigger_and_who_answers_calls_may(airflow: Airflow) -> None:
    body = {"logical_date": None, "conf": {"force": True}}
    with airflow.client("analyst") as analyst:
        assert analyst.get(f"/dags/{DAG}").status_code == httpx.codes.OK
        refused = analyst.post(f"/dags/{DAG}/dagRuns", json=body)
        assert refused.status_code == httpx.codes.FORBIDDEN
        assert analyst.get("/plugins").status_code == httpx.codes.FORBIDDEN
    with airflow.client("oncall") as oncall:
        wrong = oncall.post(
            f"/dags/{DAG}/dagRuns", json={"logical_date": None, "conf": {"force": "yes"}}
        )
        assert wrong.status_code == httpx.codes.BAD_REQUEST
        accepted = oncall.post(f"/dags/{DAG}/dagRuns", json=body)
        assert accepted.status_code == httpx.codes.OK
        # The navigation is made of these.
        plugins = oncall.get("/plugins").json()["plugins"]
        assert "tidemark_page" in {one["name"] for one in plugins}
    assert httpx.get(f"{airflow.address}/api/v2/dags").status_code == (httpx.codes.UNAUTHORIZED)


def test_nobody_gets_in_without_a_secret_where_nothing_is_set(airflow: Airflow) -> None:
    parts = ("spark-connect", "postgres", "airflow-api-server")
    assert doors.tried(airflow.running, parts) == doors.expected(airflow.running.settings, parts)
    doors.assert_spark_asks(airflow.running, "spark-connect")


@pytest.mark.long
def test_a_run_waits_for_a_spark_server_that_is_away(airflow: Airflow) -> None:
    airflow.wait(lambda: all(run["state"] in ENDED for run in airflow.runs()))
    airflow.running.stop("spark-connect")
    try:
        run = airflow.trigger("oncall", DAG, {"force": True})
        # Whichever asks Spark first: few rows may be computed without it.
        waits = airflow.wait(lambda: airflow.task_in(run, "up_for_retry"))
    finally:
        airflow.running.start("spark-connect")
    assert "SPARK_UNREACHABLE" in airflow.log(run, waits)
    # No row differs, so nothing is announced: the task that publishes is skipped.
    assert airflow.ended(run)["state"] == "success", airflow.tasks(run)


def test_a_publishing_task_that_is_killed_repeatedly_commits_once(airflow: Airflow) -> None:
    airflow.order("dora", "1.00")
    # While somebody else has the table the task waits to publish, and can be found.
    with airflow.days_locked():
        run = airflow.trigger("oncall", DAYS, {"force": True})
        first = airflow.process(run, "publish")
        kill(first)
        airflow.wait(lambda: airflow.tasks(run)["publish"] == "up_for_retry")
        airflow.clear(run, "publish")
        orphan = airflow.process(run, "publish", but=first)
        # Who watches the task dies and the task does not; to Airflow it has failed.
        kill(psutil.Process(orphan).ppid())
        path = f"/dags/{DAYS}/dagRuns/{run['dag_run_id']}/taskInstances/publish"
        airflow.act("PATCH", path, {"new_state": "failed"})
        airflow.clear(run, "publish")
        second = airflow.process(run, "publish", but=orphan)
        # Both wait, and neither knows of the other.
        assert psutil.pid_exists(orphan)
    assert airflow.ended(run)["state"] == "success", airflow.tasks(run)
    airflow.wait(lambda: not any(map(psutil.pid_exists, (orphan, second))))
    airflow.assert_days_published_once()

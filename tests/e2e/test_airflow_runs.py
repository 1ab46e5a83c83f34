"""Airflow as users meet it: its REST interface, real schedules, real roles, a real red run."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.local.airflow_config import airflow_address
from spark_jobs.planning.breaker import FEWEST
from tests.e2e.airflow_world import (
    DAG,
    DAYS,
    ENDED,
    FILES,
    MONDAY,
    PARTS,
    THURSDAY,
    TUESDAY,
    WEDNESDAY,
    Airflow,
    add_order,
)
from tests.e2e.running import RunningStack, own_settings, remove, write_files

REPLAY, ROLLBACK, RELEASE = "ops__replay", "ops__rollback", "ops__release"
# As long as every beat and answer of Airflow's is late, and no task is given up yet.
STANDSTILL_SECONDS = 8
# Events of each asset.
STORM = 30
# Rows that one refresh may read; those of all other tests are fewer.
USUAL, MANY = 500, 2000


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow and Spark for a project over a foreign table: no Kafka is needed."""
    project = tmp_path_factory.mktemp("project")
    write_files(project, FILES)
    add_order(project, "ada", "2.00")
    add_order(project, "ada", "3.00", TUESDAY)
    for day in (WEDNESDAY, THURSDAY):
        add_order(project, "cara", "1.00", day)
    settings = own_settings(
        project, replay={"approve_above_rows": 0}, breaker={"rows": USUAL, "times": 1}
    )
    running = RunningStack(settings)
    try:
        running.up(*PARTS)
        yield Airflow(running)
    finally:
        remove(settings)


def all_succeed(tasks: dict[str, str]) -> bool:
    return set(tasks.values()) == {"success"}


@pytest.mark.timeout(600)
def test_scheduled_runs_publish_and_then_skip_and_announce_the_table(airflow: Airflow) -> None:
    assert airflow.get("/importErrors")["import_errors"] == []
    dags = {dag["dag_id"] for dag in airflow.get("/dags")["dags"]}
    care = {"ops__maintenance", "ops__reconcile", "ops__stream_watch"}
    assert dags == {DAG, DAYS, REPLAY, ROLLBACK, RELEASE} | care
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


@pytest.mark.timeout(600)
def test_a_failing_critical_expectation_is_a_red_run_that_names_it(airflow: Airflow) -> None:
    airflow.run_where(all_succeed)
    before = airflow.totals()
    airflow.order("bob", "-1.00")
    red = airflow.run_where(lambda tasks: tasks.get("audit") == "failed")
    assert red["state"] == "failed"
    assert airflow.tasks(red)["publish"] == "upstream_failed"
    log = airflow.log(red, "audit")
    assert "GATE_HELD" in log
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
    airflow.wait(lambda: airflow.totals()["bob"] == Decimal("2.00"))


def test_who_reads_may_not_trigger_and_who_answers_calls_may(airflow: Airflow) -> None:
    body = {"logical_date": None, "conf": {"force": True}}
    with airflow.client("analyst") as analyst:
        assert analyst.get(f"/dags/{DAG}").status_code == httpx.codes.OK
        refused = analyst.post(f"/dags/{DAG}/dagRuns", json=body)
        assert refused.status_code == httpx.codes.FORBIDDEN
    with airflow.client("oncall") as oncall:
        wrong = oncall.post(
            f"/dags/{DAG}/dagRuns", json={"logical_date": None, "conf": {"force": "yes"}}
        )
        assert wrong.status_code == httpx.codes.BAD_REQUEST
        accepted = oncall.post(f"/dags/{DAG}/dagRuns", json=body)
        assert accepted.status_code == httpx.codes.OK
    assert httpx.get(f"{airflow_address(airflow.running.settings)}/api/v2/dags").status_code == (
        httpx.codes.UNAUTHORIZED
    )


@pytest.mark.timeout(600)
def test_a_backfill_recomputes_its_days_and_a_replay_the_rest_once_it_is_approved(
    airflow: Airflow,
) -> None:
    right, wrong = airflow.days_made_wrong()
    interval = {"from_date": f"{MONDAY}T00:00:00Z", "to_date": f"{MONDAY}T00:00:00Z"}
    with airflow.client("engineer") as engineer:
        refused = engineer.post("/backfills", json={"dag_id": DAG, **interval})
        assert not refused.is_success, "its rows have no time"
    airflow.backfill(DAYS, MONDAY, MONDAY)
    backfills = airflow.wait(
        lambda: [run for run in airflow.runs(DAYS) if run["run_type"] == "backfill"]
    )
    assert airflow.ended(backfills[0])["state"] == "success"
    assert "rows with day from 2026-01-05 to 2026-01-06" in airflow.log(backfills[0], "plan")
    assert airflow.days() == wrong | {MONDAY: right[MONDAY]}

    form = {"views": ["order_days"], "reason": "Tuesday is wrong", "dry_run": False}
    body = {"logical_date": None, "conf": form}
    with airflow.client("analyst") as analyst:
        refused = analyst.post(f"/dags/{REPLAY}/dagRuns", json=body)
        assert refused.status_code == httpx.codes.FORBIDDEN
    with airflow.client("oncall") as oncall:
        hostile = {"logical_date": None, "conf": form | {"views": ["'; DROP TABLE orders; --"]}}
        wrong_form = oncall.post(f"/dags/{REPLAY}/dagRuns", json=hostile)
        assert wrong_form.status_code == httpx.codes.BAD_REQUEST
    run = airflow.trigger("oncall", REPLAY, form)
    airflow.approve(run)
    assert airflow.ended(run)["state"] == "success", airflow.tasks(run)
    assert airflow.days() == airflow.ordered_days(), "what came since is followed as well"
    shown = airflow.running.tidemark("replay", "status", "--json").stdout
    (record,) = json.loads(shown)
    assert (record["status"], record["who"]) == ("done", "airflow:oncall")


@pytest.mark.timeout(600)
def test_a_rollback_is_approved_and_holds_the_view_until_it_is_released(airflow: Airflow) -> None:
    latest = DeltaTable(airflow.days_at).version()
    earlier = DeltaTable(airflow.days_at, version=latest - 1).to_pyarrow_table().to_pylist()
    asked = {"view": "order_days", "version": latest - 1, "reason": "The replay was a mistake"}
    run = airflow.trigger("oncall", ROLLBACK, asked)
    airflow.approve(run)
    assert airflow.ended(run)["state"] == "success", airflow.tasks(run)
    assert airflow.days() == {row["day"]: row["orders"] for row in earlier}

    held = airflow.ended(airflow.trigger("engineer", DAYS, {"force": True}))
    assert set(airflow.tasks(held).values()) == {"skipped"}
    assert "tidemark release order_days" in airflow.log(held, "plan")
    airflow.running.tidemark("release", "order_days")
    after = airflow.ended(airflow.trigger("engineer", DAYS, {"force": True}))
    assert after["state"] == "success", airflow.tasks(after)
    assert airflow.days() == airflow.ordered_days()


@pytest.mark.timeout(600)
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
    airflow.wait(lambda: all_succeed(airflow.tasks(run)))


@pytest.mark.timeout(600)
def test_a_cancelled_backfill_is_taken_up_by_another_and_a_cleared_run_computes_again(
    airflow: Airflow,
) -> None:
    right, wrong = airflow.days_made_wrong()

    def of_days() -> list[dict[str, Any]]:
        """The runs of both days, the earlier first."""
        found = [run for run in airflow.runs(DAYS) if run["run_type"] == "backfill"]
        days = (str(WEDNESDAY), str(THURSDAY))
        mine = [run for run in found if run["logical_date"].startswith(days)]
        return sorted(mine, key=lambda run: run["logical_date"])

    # While somebody else has the table the first run waits to publish.
    with airflow.days_locked():
        asked = airflow.backfill(DAYS, WEDNESDAY, THURSDAY, max_active_runs=1)
        airflow.wait(lambda: [run["state"] for run in of_days()] == ["running", "queued"])
        airflow.process(of_days()[0], "publish")
        airflow.act("PUT", f"/backfills/{asked['id']}/cancel")
    wednesday, thursday = (airflow.ended(run) for run in of_days())
    assert (wednesday["state"], thursday["state"]) == ("success", "failed")
    assert airflow.days() == wrong | {WEDNESDAY: right[WEDNESDAY]}

    airflow.backfill(DAYS, WEDNESDAY, THURSDAY, reprocess_behavior="failed")
    airflow.wait(lambda: [run["state"] for run in of_days()] == ["success", "success"])
    assert airflow.days()[THURSDAY] == right[THURSDAY]

    airflow.falsify_days()
    path = f"/dags/{DAYS}/dagRuns/{thursday['dag_run_id']}/clear"
    airflow.act("POST", path, {"dry_run": False, "only_failed": False})
    cleared = airflow.ended(thursday)
    assert "rows with day from 2026-01-08 to 2026-01-09" in airflow.log(cleared, "plan", attempt=2)
    assert airflow.days()[THURSDAY] == right[THURSDAY]
    assert airflow.days()[WEDNESDAY] != right[WEDNESDAY]


@pytest.mark.timeout(600)
def test_however_often_a_publishing_task_is_killed_one_commit_wins(airflow: Airflow) -> None:
    airflow.order("dora", "1.00")
    # While somebody else has the table the task waits to publish, and can be found.
    with airflow.days_locked():
        run = airflow.trigger("oncall", DAYS, {"force": True})
        first = airflow.process(run, "publish")
        os.kill(first, signal.SIGKILL)
        airflow.wait(lambda: airflow.tasks(run)["publish"] == "up_for_retry")
        airflow.clear(run, "publish")
        orphan = airflow.process(run, "publish", but=first)
        # Who watches the task dies and the task does not; to Airflow it has failed.
        os.kill(psutil.Process(orphan).ppid(), signal.SIGKILL)
        path = f"/dags/{DAYS}/dagRuns/{run['dag_run_id']}/taskInstances/publish"
        airflow.act("PATCH", path, {"new_state": "failed"})
        airflow.clear(run, "publish")
        second = airflow.process(run, "publish", but=orphan)
        assert psutil.pid_exists(orphan)
    assert airflow.ended(run)["state"] == "success", airflow.tasks(run)
    airflow.wait(lambda: not any(map(psutil.pid_exists, (orphan, second))))
    airflow.assert_days_published_once()


@pytest.mark.timeout(600)
def test_a_refresh_far_larger_than_usual_is_skipped_until_a_person_lets_it_pass(
    airflow: Airflow,
) -> None:
    while airflow.refreshes_unasked() < FEWEST:
        airflow.order("eve", "1.00")
        airflow.ended(airflow.trigger("oncall", DAG, {}))
    before = airflow.totals()
    many = pa.table(
        {
            "customer": ["fay"] * MANY,
            "amount": pa.array([Decimal("0.01")] * MANY, type=pa.decimal128(12, 2)),
            "day": [MONDAY] * MANY,
        }
    )
    write_deltalake(str(airflow.project / "orders"), many, mode="append")
    skipped = airflow.ended(airflow.trigger("oncall", DAG, {}))
    assert set(airflow.tasks(skipped).values()) == {"skipped"}
    log = airflow.log(skipped, "plan")
    assert "waits for a person" in log
    assert "--let-pass REASON lets it pass once" in log
    assert airflow.totals() == before
    passes = {"let_pass": "the orders of a year, all at once"}
    passed = airflow.ended(airflow.trigger("oncall", DAG, passes))
    assert passed["state"] == "success", airflow.tasks(passed)
    assert airflow.totals()["fay"] == Decimal("0.01") * MANY


@pytest.mark.timeout(600)
def test_a_run_outlives_a_database_that_stands_still_and_a_killed_scheduler(
    airflow: Airflow,
) -> None:
    airflow.order("dora", "1.00")
    with airflow.days_locked():
        run = airflow.trigger("oncall", DAYS, {"force": True})
        publishing = airflow.process(run, "publish")
        with airflow.running.standing_still("postgres"):
            time.sleep(STANDSTILL_SECONDS)
        killed = airflow.running.kill("airflow-scheduler")
        airflow.running.wait_restarted("airflow-scheduler", killed)
        assert psutil.pid_exists(publishing)
    assert airflow.ended(run)["state"] == "success", airflow.tasks(run)
    airflow.assert_days_published_once()

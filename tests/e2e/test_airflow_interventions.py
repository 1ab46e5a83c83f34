"""What people do to runs: backfills, replays, rollbacks; and what a run outlives.

Each takes a minute or more of real runs. ``tests/dags`` has the same logic without a scheduler.
"""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import httpx
import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.planning.breaker import FEWEST
from tests.e2e.airflow_world import (
    DAG,
    DAYS,
    MANY,
    MONDAY,
    REPLAY,
    ROLLBACK,
    THURSDAY,
    WEDNESDAY,
    Airflow,
)

# As long as every beat and answer of Airflow's is late, and no task is given up yet.
STANDSTILL_SECONDS = 8

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


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


def test_another_run_continues_a_cancelled_backfill_and_a_cleared_run_recomputes(
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


def test_an_unusually_large_refresh_is_skipped_until_a_person_allows_it(
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


def test_a_run_survives_a_frozen_database_and_a_killed_scheduler(
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

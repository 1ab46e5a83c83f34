"""Whole runs of a gold DAG: Airflow's own task runner, a real Spark session, real Delta tables."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.store import ControlStore

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]


def run(hour: int, dag_id: str = "gold__order_totals", **conf: Any) -> Any:
    """One run of a fresh DAG object, as ``airflow dags test`` makes it."""
    dag = gold_dags()[dag_id]
    for one in dag.tasks:
        one.retries = 0
    return dag.test(logical_date=datetime(2026, 1, 1, hour, tzinfo=UTC), run_conf=conf)


def states(dag_run: Any) -> dict[str, str]:
    return {one.task_id: str(one.state) for one in dag_run.get_task_instances()}


def last_attempt() -> Any:
    with ControlStore.open(load_settings().control_url) as store:
        return store.attempts(view="order_totals", limit=1)[0]


def test_a_run_publishes_and_the_next_one_skips_when_nothing_moved(project) -> None:
    project.order("ada", "5.00")
    project.order("ada", "7.50")
    first = run(1)
    assert set(states(first).values()) == {"success"}
    assert project.totals() == {"ada": Decimal("12.50")}

    second = run(2)
    assert set(states(second).values()) == {"skipped"}
    assert str(second.state) == "success"
    assert last_attempt().reason_code == "NO_UPSTREAM_CHANGE"

    forced = run(3, force=True)
    assert set(states(forced).values()) == {"success"}


def test_a_held_gate_fails_the_audit_and_keeps_the_old_content(
    project, revenue_is_positive
) -> None:
    project.compile(suite=revenue_is_positive)
    project.order("ada", "5.00")
    run(4)
    project.order("bob", "-1.00")
    held = run(5)
    assert str(held.state) == "failed"
    assert states(held) == {
        "plan": "success",
        "stage": "success",
        "audit": "failed",
        "publish": "upstream_failed",
    }
    assert project.totals() == {"ada": Decimal("5.00")}
    assert last_attempt().status is AttemptStatus.HELD


def test_a_verification_is_green_until_the_table_is_not_its_sql(project) -> None:
    project.compile(verify_seconds=86_400)
    nothing = run(6, "verify__order_totals")
    assert states(nothing) == {"verify": "skipped"}
    project.order("ada", "5.00")
    run(7)
    assert states(run(8, "verify__order_totals")) == {"verify": "success"}
    DeltaTable(project.totals_at).update(updates={"revenue": "CAST(1 AS DECIMAL(12, 2))"})
    found = run(9, "verify__order_totals")
    assert states(found) == {"verify": "failed"}
    with ControlStore.open(load_settings().control_url) as store:
        assert store.verifications("order_totals", limit=1)[0].finding == "FOREIGN_COMMIT"

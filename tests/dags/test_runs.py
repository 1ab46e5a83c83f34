"""Whole runs of a gold DAG: Airflow's own task runner, a real Spark session, real Delta tables."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from airflow.sdk import Asset
from airflow.utils.types import DagRunType
from deltalake import DeltaTable

from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.graph.manifest import Column
from spark_jobs.orchestration import steps
from spark_jobs.orchestration.airflow import gold_dags
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.arrow_tables import replace as replace_rows
from tests.dags.asset_events import events

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
    events("gold.order_totals")
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
    assert states(forced).pop("publish") == "skipped", "no row changed"
    assert str(forced.state) == "success"
    (told,) = events("gold.order_totals")
    expected = {"version": 0, "changed": True, "rows": 1, "inputs": {"bronze.orders": 1}}
    assert told.items() >= expected.items()
    assert {"rows_changed", "attempt"} <= told.keys()
    assert latest_publication(project.totals_at).version == 1


def test_a_refresh_far_larger_than_usual_waits_until_the_form_lets_it_pass(
    project, monkeypatch
) -> None:
    monkeypatch.setenv("TIDEMARK_BREAKER__ROWS", "5")
    project.order("ada", "1.00")
    run(1)
    with ControlStore.open(load_settings().control_url) as store:
        built = store.attempts(view="order_totals", limit=1)[0]
        for number in range(3):
            usual = {"attempt_id": f"usual-{number}", "tick": f"usual-{number}", "sequence": None}
            store.create_attempt(replace(built, reason_code="INPUT_CHANGED_NO_RULE", **usual))
    for _ in range(10):
        project.order("ada", "1.00")
    waiting = run(2)
    assert set(states(waiting).values()) == {"skipped"}
    assert last_attempt().reason_code == "WAITS_FOR_PERSON"
    assert "it reads 11 rows where 1 are usual" in last_attempt().reason
    assert project.totals() == {"ada": Decimal("1.00")}

    by_hand = SimpleNamespace(
        run_type=DagRunType.MANUAL,
        run_id="manual__1",
        data_interval_start=None,
        data_interval_end=None,
        clear_number=0,
        triggering_user_name="oncall",
    )
    filled_in = {"let_pass": "ten orders, OPS-12"}
    task = SimpleNamespace(xcom_push=lambda **_: None)
    attempt_id = steps.plan("order_totals", {"dag_run": by_hand, "params": filled_in, "ti": task})
    assert last_attempt().attempt_id == attempt_id
    assert last_attempt().reason.endswith("; let pass by airflow:oncall: ten orders, OPS-12")


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
    assert last_attempt().status is AttemptStatus.BLOCKED
    [alert] = (load_settings().state / "alerts.jsonl").read_text().splitlines()
    told = json.loads(alert)
    assert (told["condition"], told["table"]) == ("GATE_BLOCKED", "gold.order_totals")
    assert (told["dag_id"], told["task_id"]) == ("gold__order_totals", "audit")
    assert told["runbook"] == "docs/runbooks/gold-refresh.md"
    assert "(min_value=0) failed: 1 of 2 values do not fit" in told["message"]


DAYS = """SELECT CAST(CONCAT('2026-01-0', LENGTH(o.customer)) AS DATE) AS day,
CAST(SUM(o.amount) AS DECIMAL(12, 2)) AS revenue FROM bronze.orders AS o GROUP BY 1"""


def test_a_backfill_recomputes_the_rows_of_its_interval_and_no_others(project) -> None:
    columns = (Column(name="day", type="date"), Column(name="revenue", type="decimal(12,2)"))
    project.compile(sql=DAYS, query=DAYS, columns=columns, grain=("day",))
    project.order("a", "5.00")
    project.order("bb", "7.00")
    run(10)
    falsify(project.totals_at)
    start = datetime(2026, 1, 2, 10, tzinfo=UTC)
    backfill = SimpleNamespace(
        run_type=DagRunType.BACKFILL_JOB,
        run_id="backfill__1",
        data_interval_start=start,
        data_interval_end=start + timedelta(minutes=15),
        clear_number=0,
    )
    pushed: dict[str, Any] = {}
    task = SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))
    attempt_id = steps.plan("order_totals", {"dag_run": backfill, "params": {}, "ti": task})
    assert pushed["plan"]["reason"] == "backfill of the rows with day from 2026-01-02 to 2026-01-03"
    attempt_id = steps.audit(steps.stage(attempt_id))
    (event,) = steps.publish(attempt_id, Asset("gold.order_totals"))
    assert event.extra["attempt"] == attempt_id
    found = {str(row["day"]): row["revenue"] for row in rows_of(project.totals_at)}
    assert found == {"2026-01-01": Decimal(1), "2026-01-02": Decimal(7)}


def falsify(location: str) -> None:
    """Change every row in a commit that looks like a publication, as a bug would."""
    mark = latest_publication(location).watermark.as_metadata()
    mark |= {"sequence": mark["sequence"] + 1, "attempt": "wrong"}
    table = DeltaTable(location).to_pyarrow_table()
    ones = pa.array([Decimal(1)] * len(table), type=pa.decimal128(12, 2))
    replace_rows(table.set_column(1, "revenue", ones), location, metadata=mark)


def rows_of(location: str) -> list[dict[str, Any]]:
    return DeltaTable(location).to_pyarrow_table().to_pylist()


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

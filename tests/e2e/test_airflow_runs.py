"""Airflow as users meet it: its REST interface, real schedules, real roles, a real red run."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.gold.publications import latest_publication
from spark_jobs.local.airflow_config import airflow_address
from spark_jobs.local.secrets import airflow_users
from spark_jobs.storage.small import write_rows
from tests.e2e.running import RunningStack, own_settings, remove, write_files

PARTS = (
    "postgres",
    "spark-connect",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
)
DAG, DAYS = "gold__order_totals", "gold__order_days"
REPLAY, ROLLBACK = "ops__replay", "ops__rollback"
MONDAY, TUESDAY = date(2026, 1, 5), date(2026, 1, 6)
ENDED = {"success", "failed"}
FILES = {
    "sources/orders.yml": """\
description: Orders of somebody else.
format: delta
location: orders
columns: {customer: STRING, amount: "DECIMAL(12,2)", day: DATE}
""",
    "sql/gold/order_totals.sql": """\
/* gold
description: Revenue per customer.
owner: analytics
refresh: micro-batch
every: 1 minute
freshness: 5 minutes
*/
SELECT o.customer AS customer, CAST(SUM(o.amount) AS DECIMAL(12, 2)) AS revenue
FROM bronze.orders AS o
GROUP BY o.customer
""",
    "sql/gold/order_days.sql": """\
/* gold
description: Orders per day.
owner: analytics
refresh: micro-batch
every: 1 day
freshness: 2 days
grain: [day]
*/
SELECT o.day AS day, COUNT(*) AS orders
FROM bronze.orders AS o
GROUP BY o.day
""",
    "expectations/gold/order_totals.json": json.dumps(
        {
            "name": "order_totals",
            "expectations": [
                {
                    "type": "expect_column_values_to_be_between",
                    "kwargs": {"column": "revenue", "min_value": 0},
                    "severity": "critical",
                }
            ],
        }
    ),
}


class Airflow:
    """A small project's Airflow, over REST."""

    def __init__(self, running: RunningStack) -> None:
        self.running = running
        self.project = running.settings.project_dir

    def client(self, user: str) -> httpx.Client:
        address = airflow_address(self.running.settings)
        password = airflow_users(self.running.settings)[user]["password"]
        answer = httpx.post(
            f"{address}/auth/token", json={"username": user, "password": password}, timeout=30
        )
        answer.raise_for_status()
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        return httpx.Client(base_url=f"{address}/api/v2", headers=headers, timeout=30)

    def get(self, path: str, **params: Any) -> Any:
        with self.client("engineer") as client:
            answer = client.get(path, params=params)
            answer.raise_for_status()
            return answer.json()

    def runs(self, dag_id: str = DAG) -> list[dict[str, Any]]:
        """The newest runs first."""
        return self.get(f"/dags/{dag_id}/dagRuns", order_by="-run_after", limit=20)["dag_runs"]

    def ended(self, run: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end of a run."""
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}"
        return self.wait(lambda: (now := self.get(path))["state"] in ENDED and now)

    def tasks(self, run: dict[str, Any]) -> dict[str, str]:
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances"
        return {one["task_id"]: one["state"] for one in self.get(path)["task_instances"]}

    def log(self, run: dict[str, Any], task: str) -> str:
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances/{task}/logs/1"
        return json.dumps(self.get(path)["content"])

    def run_where(self, holds: Callable[[dict[str, str]], bool]) -> dict[str, Any]:
        """Wait for a run that has ended and whose tasks' states satisfy ``holds``."""

        def found() -> dict[str, Any] | None:
            ended = (run for run in self.runs() if run["state"] in ENDED)
            return next((run for run in ended if holds(self.tasks(run))), None)

        return self.wait(found)

    def wait(self, found: Callable[[], Any], *, seconds: float = 240) -> Any:
        """Ask again and again until there is an answer."""
        deadline = time.monotonic() + seconds
        while not (answer := found()):
            assert time.monotonic() < deadline, [(run, self.tasks(run)) for run in self.runs()]
            time.sleep(2)
        return answer

    def trigger(self, user: str, dag_id: str, conf: dict[str, Any]) -> dict[str, Any]:
        """A run with a form's values, as a person starts it."""
        with self.client(user) as client:
            body = {"logical_date": None, "conf": conf}
            return client.post(f"/dags/{dag_id}/dagRuns", json=body).raise_for_status().json()

    def approve(self, run: dict[str, Any]) -> None:
        """Answer the question; who only reads may not, an engineer may."""
        answer = {"chosen_options": ["Approve"], "params_input": {}}
        tasks = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances"
        path = f"{tasks}/approve/-1/hitlDetails"

        def state() -> str | None:
            return self.tasks(run).get("approve")

        def approved() -> bool:
            # An answer that comes too soon is asked for again.
            if state() == "awaiting_input":
                with self.client("engineer") as engineer:
                    said = engineer.patch(path, json=answer)
                    assert said.is_success or said.status_code == httpx.codes.CONFLICT, said.text
            return state() == "success"

        self.wait(lambda: state() == "awaiting_input")
        with self.client("analyst") as analyst:
            assert analyst.patch(path, json=answer).status_code == httpx.codes.FORBIDDEN
        self.wait(approved)

    def order(self, customer: str, amount: str) -> None:
        add_order(self.project, customer, amount)

    def totals(self) -> dict[str, Decimal]:
        table = DeltaTable(f"{self.running.settings.lake}/gold/order_totals").to_pyarrow_table()
        return {row["customer"]: row["revenue"] for row in table.to_pylist()}

    @property
    def days_at(self) -> str:
        return f"{self.running.settings.lake}/gold/order_days"

    def days(self) -> dict[date, int]:
        table = DeltaTable(self.days_at).to_pyarrow_table()
        return {row["day"]: row["orders"] for row in table.to_pylist()}

    def ordered_days(self) -> dict[date, int]:
        """What the view's SQL gives now."""
        orders = DeltaTable(str(self.project / "orders")).to_pyarrow_table()
        return dict(Counter(orders.column("day").to_pylist()))

    def falsify_days(self) -> None:
        """Change every row under a commit that says it is a publication, as a fault would."""
        latest = latest_publication(self.days_at)
        assert latest is not None
        mark = latest.watermark.as_metadata()
        mark |= {"sequence": mark["sequence"] + 1, "attempt": "wrong"}
        rows = DeltaTable(self.days_at).to_pyarrow_table()
        wrong = pa.array([count + 10 for count in rows.column("orders").to_pylist()])
        write_rows(rows.set_column(1, "orders", wrong), self.days_at, metadata=mark)


def add_order(project: Path, customer: str, amount: str, day: date = MONDAY) -> None:
    """Append to the foreign table, as its owner would."""
    amounts = pa.array([Decimal(amount)], type=pa.decimal128(12, 2))
    rows = pa.table({"customer": [customer], "amount": amounts, "day": [day]})
    write_deltalake(str(project / "orders"), rows, mode="append")


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """Airflow and Spark for a project over a foreign table: no Kafka is needed."""
    project = tmp_path_factory.mktemp("project")
    write_files(project, FILES)
    add_order(project, "ada", "2.00")
    add_order(project, "ada", "3.00", TUESDAY)
    settings = own_settings(project, replay={"approve_above_rows": 0})
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
    assert dags == {DAG, DAYS, REPLAY, ROLLBACK, "ops__release"} | care
    pools = {one["name"] for one in airflow.get("/pools")["pools"]}
    assert pools == {"default_pool", "live", "replay", "maintenance"}
    published = airflow.run_where(all_succeed)
    assert published["run_type"] == "scheduled"
    assert airflow.totals()["ada"] == Decimal("5.00")
    airflow.run_where(lambda tasks: set(tasks.values()) == {"skipped"})
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
    assert airflow.totals() == before

    airflow.order("bob", "3.00")
    airflow.wait(lambda: "bob" in airflow.totals())
    assert airflow.totals()["bob"] == Decimal("2.00")


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
    # A day's own start may lie hours ahead.
    first = airflow.ended(airflow.trigger("engineer", DAYS, {}))
    assert first["state"] == "success", airflow.tasks(first)
    airflow.wait(lambda: all(run["state"] in ENDED for run in airflow.runs(DAYS)))
    right = airflow.days()
    airflow.falsify_days()
    wrong = airflow.days()
    interval = {"from_date": f"{MONDAY}T00:00:00Z", "to_date": f"{MONDAY}T00:00:00Z"}
    with airflow.client("engineer") as engineer:
        refused = engineer.post("/backfills", json={"dag_id": DAG, **interval})
        assert not refused.is_success, "its rows have no time"
        engineer.post("/backfills", json={"dag_id": DAYS, **interval}).raise_for_status()
    backfills = airflow.wait(
        lambda: [run for run in airflow.runs(DAYS) if run["run_type"] == "backfill"]
    )
    assert airflow.ended(backfills[0])["state"] == "success"
    assert "rows with day from 2026-01-05 to 2026-01-06" in airflow.log(backfills[0], "plan")
    assert airflow.days() == {MONDAY: right[MONDAY], TUESDAY: wrong[TUESDAY]}

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
        airflow.wait(lambda: airflow.tasks(run).get("stage") == "up_for_retry")
    finally:
        airflow.running.start("spark-connect")
    assert "SPARK_UNREACHABLE" in airflow.log(run, "stage")
    airflow.wait(lambda: all_succeed(airflow.tasks(run)))

"""A small project over a foreign table, and its Airflow over REST."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_jobs.gold.base.context import gold_table
from spark_jobs.gold.base.publications import latest_publication, publications
from spark_jobs.planning.breaker import ASKED_FOR
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.stack.airflow_config import airflow_address
from spark_jobs.stack.secrets import airflow_users
from spark_jobs.stack.trust import trusted
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.arrow_tables import replace as replace_rows
from spark_jobs.storage.lake import lock_directory
from tests.e2e.running import POLL_SECONDS, RunningStack, new_stack, write_files

PARTS = (
    "postgres",
    "spark-connect",
    "airflow-api-server",
    "airflow-scheduler",
    "airflow-dag-processor",
)
DAG, DAYS = "gold__order_totals", "gold__order_days"
REPLAY, ROLLBACK, RELEASE = "ops__replay", "ops__rollback", "ops__release"
# A writer waits this long for a table; on a busy machine it takes minutes until the writers of a
# test have started.
PATIENCE = 300
READING_SECONDS = 2
# Limit of rows that one refresh may read; all other tests read fewer.
USUAL, MANY = 500, 2000
MONDAY, TUESDAY, WEDNESDAY, THURSDAY = (date(2026, 1, day) for day in (5, 6, 7, 8))
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
strategy: incremental
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
        self.address = airflow_address(running.settings)
        self.tokens: dict[str, str] = {}

    def client(self, user: str) -> httpx.Client:
        if user not in self.tokens:
            password = airflow_users(self.running.settings)[user]["password"]
            login = {"username": user, "password": password}
            answer = httpx.post(f"{self.address}/auth/token", json=login, timeout=30)
            self.tokens[user] = answer.raise_for_status().json()["access_token"]
        headers = {"Authorization": f"Bearer {self.tokens[user]}"}
        base = f"{self.address}/api/v2"
        return httpx.Client(base_url=base, headers=headers, timeout=30, verify=trusted())

    def get(self, path: str, **params: Any) -> Any:
        with self.client("engineer") as client:
            answer = client.get(path, params=params)
            answer.raise_for_status()
            return answer.json()

    def runs(self, dag_id: str = DAG) -> list[dict[str, Any]]:
        """The runs, newest first."""
        return self.get(f"/dags/{dag_id}/dagRuns", order_by="-run_after", limit=20)["dag_runs"]

    def ended(self, run: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end of a run."""
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}"
        return self.wait(lambda: (now := self.get(path))["state"] in ENDED and now)

    def tasks(self, run: dict[str, Any]) -> dict[str, str]:
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances"
        return {one["task_id"]: one["state"] for one in self.get(path)["task_instances"]}

    def task_in(self, run: dict[str, Any], state: str) -> str | None:
        """A task of the run that is in the given state."""
        return next((task for task, now in self.tasks(run).items() if now == state), None)

    def log(self, run: dict[str, Any], task: str, *, attempt: int = 1) -> str:
        tasks = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances"
        return json.dumps(self.get(f"{tasks}/{task}/logs/{attempt}")["content"])

    def run_where(self, holds: Callable[[dict[str, str]], bool]) -> dict[str, Any]:
        """Wait for a run that has ended and whose tasks' states satisfy ``holds``."""

        def found() -> dict[str, Any] | None:
            ended = (run for run in self.runs() if run["state"] in ENDED)
            return next((run for run in ended if holds(self.tasks(run))), None)

        return self.wait(found)

    def wait(self, found: Callable[[], Any], *, seconds: float = 240) -> Any:
        """Poll until there is a result."""
        deadline = time.monotonic() + seconds
        while not (answer := found()):
            assert time.monotonic() < deadline, [(run, self.tasks(run)) for run in self.runs()]
            time.sleep(POLL_SECONDS)
        return answer

    def trigger(self, user: str, dag_id: str, conf: dict[str, Any]) -> dict[str, Any]:
        """Trigger a run with a form's values, as a person does."""
        with self.client(user) as client:
            body = {"logical_date": None, "conf": conf}
            return client.post(f"/dags/{dag_id}/dagRuns", json=body).raise_for_status().json()

    def storm(self, events: int) -> None:
        """Emit an event for every table, several times."""
        assets = [one["id"] for one in self.get("/assets")["assets"]]
        with self.client("engineer") as engineer:
            for asset in assets * events:
                engineer.post("/assets/events", json={"asset_id": asset}).raise_for_status()

    def approve(self, run: dict[str, Any]) -> None:
        """Answer the approval; a read-only user may not, an engineer may."""
        answer = {"chosen_options": ["Approve"], "params_input": {}}
        tasks = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances"
        path = f"{tasks}/approve/-1/hitlDetails"

        def state() -> str | None:
            return self.tasks(run).get("approve")

        def approved() -> bool:
            # After an answer that came too early, Airflow asks again, but only a few times. A
            # person reads the question first.
            if state() == "awaiting_input":
                time.sleep(READING_SECONDS)
                with self.client("engineer") as engineer:
                    said = engineer.patch(path, json=answer)
                    assert said.is_success or said.status_code == httpx.codes.CONFLICT, said.text
            return state() == "success"

        self.wait(lambda: state() == "awaiting_input")
        with self.client("analyst") as analyst:
            assert analyst.patch(path, json=answer).status_code == httpx.codes.FORBIDDEN
        self.wait(approved)

    def act(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """An engineer's action in the user interface."""
        with self.client("engineer") as client:
            return client.request(method, path, json=body).raise_for_status().json()

    def pause(self, dag_id: str, *, paused: bool) -> None:
        self.act("PATCH", f"/dags/{dag_id}", {"is_paused": paused})

    def pause_between_runs(self, dag_id: str) -> None:
        """Pause a DAG while it has no run: a running one would stop halfway."""

        def paused() -> bool:
            self.pause(dag_id, paused=True)
            between = all(run["state"] in ENDED for run in self.runs(dag_id))
            self.pause(dag_id, paused=between)
            return between

        self.wait(paused)

    def backfill(self, dag_id: str, first: date, last: date, **more: Any) -> dict[str, Any]:
        """Create a backfill of some days, inclusive."""
        interval = {"from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z"}
        return self.act("POST", "/backfills", {"dag_id": dag_id, **interval, **more})

    def clear(self, run: dict[str, Any], task: str) -> None:
        """Clear a task, so that it runs again."""
        body = {"dry_run": False, "dag_run_id": run["dag_run_id"], "task_ids": [task]}
        self.act("POST", f"/dags/{run['dag_id']}/clearTaskInstances", body | {"only_failed": False})

    def process(self, run: dict[str, Any], task: str, *, but: int | None = None) -> int:
        """Wait until a task waits for its table in a new process; returns the process id."""
        path = f"/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances/{task}"

        def found() -> int | None:
            now = self.get(path)
            if now["state"] != "running" or now["pid"] == but:
                return None
            # Earlier it still communicates with its supervisor, and would die with it.
            log = self.log(run, task, attempt=now["try_number"])
            return now["pid"] if "waiting table=" in log else None

        try:
            return int(self.wait(found))
        except AssertionError as error:
            now = self.get(path)
            log = self.log(run, task, attempt=now["try_number"])
            raise AssertionError(f"{now['state']}, pid {now['pid']}: {log[-2000:]}") from error

    def order(self, customer: str, amount: str) -> None:
        add_order(self.project, customer, amount)

    def totals(self) -> dict[str, Decimal]:
        table = DeltaTable(f"{self.running.settings.lake}/gold/order_totals").to_pyarrow_table()
        return {row["customer"]: row["revenue"] for row in table.to_pylist()}

    def refreshes_unasked(self) -> int:
        """Number of unrequested publications of the totals, which determine the usual size."""
        with ControlStore.open(self.running.settings.control_url) as store:
            done = store.attempts("order_totals", statuses=(AttemptStatus.PUBLISHED,))
        unusual = {*ASKED_FOR, ReasonCode.FIRST_BUILD}
        return sum(one.reason_code not in unusual for one in done)

    @property
    def days_at(self) -> str:
        return f"{self.running.settings.lake}/gold/order_days"

    def days(self) -> dict[date, int]:
        table = DeltaTable(self.days_at).to_pyarrow_table()
        return {row["day"]: row["orders"] for row in table.to_pylist()}

    def ordered_days(self) -> dict[date, int]:
        """The current result of the view's SQL."""
        orders = DeltaTable(str(self.project / "orders")).to_pyarrow_table()
        return dict(Counter(orders.column("day").to_pylist()))

    def refresh_days(self) -> None:
        """Refresh the view by hand; its scheduled start may be hours ahead."""
        run = self.ended(self.trigger("engineer", DAYS, {}))
        assert run["state"] == "success", self.tasks(run)
        self.wait(lambda: all(run["state"] in ENDED for run in self.runs(DAYS)))
        assert self.days() == self.ordered_days()

    def days_locked(self) -> AbstractContextManager[Path]:
        """Lock the view as another writer would, so that publishing waits."""
        settings = self.running.settings
        locks = lock_directory(settings.lake, settings.state)
        return table_lock(locks, gold_table("order_days"))

    def assert_days_published_once(self) -> None:
        """The view equals its SQL, and no attempt was published twice."""
        assert self.days() == self.ordered_days()
        attempts = [one.watermark.attempt for one in publications(self.days_at)]
        assert len(attempts) == len(set(attempts))

    def days_made_wrong(self) -> tuple[dict[date, int], dict[date, int]]:
        """The view's correct rows, and its rows after ``falsify_days``."""
        self.refresh_days()
        right = self.days()
        self.falsify_days()
        return right, self.days()

    def falsify_days(self) -> None:
        """Change every row in a commit that looks like a publication, as a bug would."""
        latest = latest_publication(self.days_at)
        assert latest is not None
        mark = latest.watermark.as_metadata()
        mark |= {"sequence": mark["sequence"] + 1, "attempt": f"wrong-{uuid4().hex}"}
        rows = DeltaTable(self.days_at).to_pyarrow_table()
        wrong = pa.array([count + 10 for count in rows.column("orders").to_pylist()])
        replace_rows(rows.set_column(1, "orders", wrong), self.days_at, metadata=mark)


def small_airflow(project: Path) -> Iterator[Airflow]:
    """Airflow, Spark and some orders, before the first refresh."""
    write_files(project, FILES)
    add_order(project, "ada", "2.00")
    add_order(project, "ada", "3.00", TUESDAY)
    for day in (WEDNESDAY, THURSDAY):
        add_order(project, "cara", "1.00", day)
    overrides = {
        "replay": {"approve_above_rows": 0},
        "breaker": {"rows": USUAL, "times": 1},
        "gold": {"lease_seconds": PATIENCE},
    }
    with new_stack(project, **overrides) as running:
        running.up(*PARTS)
        yield Airflow(running)


def all_succeed(tasks: dict[str, str]) -> bool:
    return set(tasks.values()) == {"success"}


def add_order(project: Path, customer: str, amount: str, day: date = MONDAY) -> None:
    """Append to the foreign table, as its owner does."""
    amounts = pa.array([Decimal(amount)], type=pa.decimal128(12, 2))
    rows = pa.table({"customer": [customer], "amount": amounts, "day": [day]})
    write_deltalake(str(project / "orders"), rows, mode="append")

"""A view that is later than it declares is an incident, until it is fresh again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.names import TableName
from spark_jobs.orchestration.maintenance import maintenance_dags
from spark_jobs.orchestration.overdue import CONDITION, TASK_ID, alert_overdue
from spark_jobs.orchestration.resolved import ResolvedNotifier
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage import arrow_tables, log
from spark_jobs.storage.errors import LogUnreadableError

pytestmark = pytest.mark.filterwarnings("default")

ORDERS = TableName.parse("bronze.orders")


def publish(project) -> None:
    """Publish the view from the input's newest version, as a refresh would, without Spark."""
    mark = Watermark(
        view="order_totals",
        sequence=1,
        epoch=1,
        fingerprint="1",
        rule="full",
        vector=VersionVector({ORDERS: log.table_version(project.orders_at)}),
        tick="t1",
        attempt="a1",
        clock=utc_now(),
    )
    rows = pa.table({"customer": ["ada"]})
    arrow_tables.replace(rows, project.totals_at, metadata=mark.as_metadata())


def look(minutes: float) -> None:
    """The task, some minutes from now."""
    ti = SimpleNamespace(
        dag_id="ops__stream_watch", task_id=TASK_ID, run_id="r1", log_url="http://log"
    )
    context: Any = {"ti": ti, "dag": None}
    alert_overdue(load_settings(), context, now=datetime.now(UTC) + timedelta(minutes=minutes))
    ResolvedNotifier(load_settings(), about_views=False)(context)


def alerts() -> list[dict[str, Any]]:
    file = load_settings().state / "alerts.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_one_alert_when_it_is_late_and_one_when_it_is_fresh_again(project) -> None:
    project.order("ada", "5.00")
    publish(project)
    look(minutes=300)
    assert alerts() == [], "nothing changed since"
    project.order("bob", "7.00")
    look(minutes=29)
    assert alerts() == [], "its freshness is 30 minutes"
    for minutes in (31, 36, 125):
        look(minutes=minutes)
    (opened,) = alerts()
    assert (opened["condition"], opened["status"]) == (CONDITION, "open")
    assert (opened["table"], opened["task_id"]) == ("gold.order_totals", TASK_ID)
    expected = "gold.order_totals is 31 minutes behind its inputs, its freshness is 30 minutes; "
    assert opened["message"].startswith(expected)
    assert opened["runbook"] == "docs/runbooks/gold-refresh.md"
    publish(project)
    look(minutes=130)
    _, resolved = alerts()
    assert (resolved["status"], resolved["times"]) == ("resolved", 3)
    assert resolved["since"] == opened["at"]
    look(minutes=135)
    assert len(alerts()) == 2


def attempt(status: str, **changed: Any) -> None:
    now = utc_now()
    row = RefreshAttempt(
        attempt_id="a2",
        view="order_totals",
        tick="t2",
        epoch=1,
        status=AttemptStatus(status),
        started_at=now,
        updated_at=now,
        **changed,
    )
    with ControlStore.open(load_settings().control_url) as store:
        store.create_attempt(row)


@pytest.mark.parametrize(
    ("status", "code", "cause", "runbook"),
    [
        ("blocked", None, "the gate blocks its newest result", "gold-refresh"),
        ("skipped", "WAITS_FOR_PERSON", "its refresh waits for a person", "refresh-waits"),
        ("failed", None, "the last attempt is failed", "gold-refresh"),
    ],
)
def test_the_alert_has_the_cause_and_its_runbook(project, status, code, cause, runbook) -> None:
    project.order("ada", "5.00")
    publish(project)
    project.order("bob", "7.00")
    attempt(status, reason_code=code)
    look(minutes=31)
    (told,) = alerts()
    assert cause in told["message"]
    assert told["runbook"] == f"docs/runbooks/{runbook}.md"


def test_a_view_that_streams_refresh_leads_to_its_own_runbook(project) -> None:
    project.compile(refresh=RefreshPolicy.CONTINUOUS, every_seconds=None)
    project.order("ada", "5.00")
    publish(project)
    project.order("bob", "7.00")
    look(minutes=31)
    assert alerts()[0]["runbook"] == "docs/runbooks/continuous-view.md"


def test_without_a_declared_freshness_nothing_is_late(project) -> None:
    project.compile(freshness_seconds=None)
    project.order("ada", "5.00")
    publish(project)
    project.order("bob", "7.00")
    look(minutes=60 * 24)
    assert alerts() == []


def test_a_log_that_cannot_be_read_fails_the_task_and_ends_no_incident(project) -> None:
    project.order("ada", "5.00")
    publish(project)
    project.order("bob", "7.00")
    look(minutes=31)
    first = Path(project.totals_at, "_delta_log/00000000000000000000.json")
    first.write_text("nothing that Delta writes")
    with pytest.raises(LogUnreadableError):
        look(minutes=36)
    assert [one["status"] for one in alerts()] == ["open"]


def test_the_watch_runs_the_task(project) -> None:
    task = maintenance_dags()["ops__stream_watch"].get_task(TASK_ID)
    assert task.pool == "default_pool"
    assert [type(one).__name__ for one in task.on_failure_callback] == ["AlertNotifier"]

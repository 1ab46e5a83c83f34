"""Alerts on gold views that are later than their declared ``freshness``: one for each view.

Airflow's own deadlines are about runs: they count from when a run was queued. A view is also late
if its DAG is paused, its result is blocked or a stream refreshes it, so the table is measured.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Context

from spark_jobs.definitions.durations import duration_text
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.errors import LakehouseError
from spark_jobs.names import Layer, TableName
from spark_jobs.orchestration.alerts import Alert, runbook_at, send, with_incident
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.resolved import resolved_alert
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from spark_jobs.gold.base.freshness import ViewStatus

TASK_ID: Final = "freshness"
CONDITION: Final = "FRESHNESS_MISSED"

log = logging.getLogger("airflow.task.tidemark")


def alert_overdue(settings: Settings, context: Context, *, now: datetime | None = None) -> None:
    """Alert on each view that is late, and report the end for each that no longer is.

    A view that a rollback pins is not late: somebody chose its content.

    Raises:
        LakehouseError: a view's log cannot be read; the other views were looked at.
    """
    now = now or datetime.now(UTC)
    late, unreadable = _late_views(settings, now)
    for one in late:
        alert, new = with_incident(settings, _alert(settings, context, one, now), about=one.view)
        log.info("%s, since %s", alert.message, alert.since)
        if new:
            send(settings, alert, context)
    named = {str(TableName(Layer.GOLD, one.view)) for one in late}
    for ended in _end_others(settings, context, named | unreadable.keys(), now):
        send(settings, ended, context)
    for error in unreadable.values():
        raise error


def _late_views(
    settings: Settings, now: datetime
) -> tuple[list[ViewStatus], dict[str, LakehouseError]]:
    """The views that are late, and the errors of tables that cannot be read."""
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.base.freshness import Freshness, view_status
    from spark_jobs.state.store import ControlStore

    manifest = compiled_manifest(settings)
    late: list[ViewStatus] = []
    unreadable: dict[str, LakehouseError] = {}
    with ControlStore.open(settings.control_url) as store:
        gold = GoldContext(settings, manifest, store)
        for name, entry in sorted(manifest.gold.items()):
            try:
                status = view_status(gold, name, now=now)
            except LakehouseError as error:
                unreadable[str(entry.table_name)] = error
                continue
            if status.freshness is Freshness.LATE and status.pinned is None:
                late.append(status)
    return late, unreadable


def _alert(settings: Settings, context: Context, status: ViewStatus, now: datetime) -> Alert:
    table = str(TableName(Layer.GOLD, status.view))
    behind, target = status.behind or timedelta(), status.target or timedelta()
    minutes = duration_text(max(behind.total_seconds() // 60, 1) * 60)
    allowed = duration_text(target.total_seconds())
    cause, runbook = _cause(status)
    ti: Any = context["ti"]
    return Alert(
        at=now.isoformat(),
        environment=settings.environment,
        dag_id=ti.dag_id,
        task_id=ti.task_id,
        run_id=ti.run_id,
        log_url=str(getattr(ti, "log_url", None) or ""),
        table=table,
        condition=CONDITION,
        message=f"{table} is {minutes} behind its inputs, its freshness is {allowed}; {cause}",
        todo=f"`tidemark status {status.view}` shows its last attempts.",
        runbook=runbook_at(settings, runbook),
    )


def _cause(status: ViewStatus) -> tuple[str, str]:
    """Why it is late, as far as its status says, and the runbook."""
    if status.policy is RefreshPolicy.CONTINUOUS:
        return "the streaming application refreshes it", "continuous-view"
    if status.waits:
        return "its refresh waits for a person", "refresh-waits"
    if status.blocked:
        return "the gate blocks its newest result", "gold-refresh"
    last = "" if status.last is None else f", the last attempt is {status.last.status.value}"
    return f"no refresh has published the newest changes{last}", "gold-refresh"


def _end_others(settings: Settings, context: Context, late: set[str], now: datetime) -> list[Alert]:
    """Close the incidents of views that are not late; returns their last alerts."""
    from spark_jobs.state.store import ControlStore

    ti: Any = context["ti"]
    with ControlStore.open(settings.control_url) as store:
        fresh = {
            one.table
            for one in store.open_incidents(ti.dag_id, task_id=TASK_ID)
            if one.table is not None and one.table not in late
        }
        if not fresh:
            return []
        ended = store.resolve_incidents(ti.dag_id, task_id=TASK_ID, tables=fresh, now=now)
    return [resolved_alert(settings, one, context, now=now) for one in ended]

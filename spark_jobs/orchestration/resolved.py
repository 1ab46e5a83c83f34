"""Resolves incidents after a successful run, and notifies through the same notifiers."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, Context

from spark_jobs.orchestration.alerts import RESOLVED, Alert, send
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from spark_jobs.state.incidents import Incident
    from spark_jobs.state.store import ControlStore

log = logging.getLogger("airflow.task.tidemark")


class ResolvedNotifier(BaseNotifier):
    """Notifies that the open incidents of a task, or of a view's DAG, are resolved."""

    def __init__(
        self, settings: Settings, *, view: str | None = None, about_views: bool = True
    ) -> None:
        """Create it for a DAG.

        Args:
            settings: of the project.
            view: the gold view that the DAG refreshes: all incidents of the DAG are resolved when
                its newest attempt with work to do is published. None: only incidents of the
                successful task are.
            about_views: also incidents about a view. A task that checks many views resolves them
                itself.
        """
        super().__init__()
        self._settings, self._view = settings, view
        self._tables = None if about_views else (None,)

    def notify(self, context: Context) -> None:
        """Resolve the incidents, and send each; without incidents this costs one query."""
        from spark_jobs.state.store import ControlStore

        ti: Any = context["ti"]
        now = datetime.now(UTC)
        with ControlStore.open(self._settings.control_url) as store:
            if not store.has_open_incident(ti.dag_id):
                return
            if self._view is not None and not _published(store, self._view):
                return
            task_id = ti.task_id if self._view is None else None
            ended = store.resolve_incidents(
                ti.dag_id, task_id=task_id, tables=self._tables, now=now
            )
        for one in ended:
            send(self._settings, resolved_alert(self._settings, one, context, now=now), context)


def resolved_alert(
    settings: Settings, incident: Incident, context: Context, *, now: datetime
) -> Alert:
    """The last alert of an incident, from the context of the run that showed its end."""
    ti: Any = context["ti"]
    return Alert(
        at=now.isoformat(),
        environment=settings.environment,
        dag_id=incident.dag_id,
        task_id=incident.task_id,
        run_id=ti.run_id,
        table=incident.table,
        condition=incident.condition,
        message=incident.message,
        todo="",
        runbook=incident.runbook,
        log_url=str(getattr(ti, "log_url", None) or ""),
        status=RESOLVED,
        since=incident.opened_at.isoformat(),
        times=incident.times,
    )


def _published(store: ControlStore, view: str) -> bool:
    """Whether no attempt of a view has failed or waits since its newest publication."""
    from spark_jobs.state.attempts import AttemptStatus

    idle = {AttemptStatus.SKIPPED, AttemptStatus.SUPERSEDED}
    statuses = tuple(one for one in AttemptStatus if one not in idle)
    newest = store.attempts(view, statuses=statuses, limit=1)
    return bool(newest) and newest[0].status is AttemptStatus.PUBLISHED

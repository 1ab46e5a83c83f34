"""The incidents of the page: what broke, for how long, and where to look."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from spark_jobs.orchestration.blueprint import dag_id
from spark_jobs.serving.page.facts import AIRFLOW_PAGES, IncidentLine, Link, Tone
from spark_jobs.serving.report.status_tables import ago, duration

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.incidents import Incident

SHOWN: Final = 20


def incident_lines(project: OpenProject, *, now: datetime) -> tuple[IncidentLine, ...]:
    """The newest incidents, those that are open first."""
    return tuple(_line(one, now=now) for one in project.store.incidents(limit=SHOWN))


def runbook_link(path: str) -> Link:
    """A runbook; a browser can follow it where the settings name a site."""
    return Link(path, path if path.startswith(("https://", "http://")) else "")


def view_links(view: str) -> tuple[Link, ...]:
    """The DAG that refreshes a view."""
    name = dag_id(view)
    return (Link(name, f"{AIRFLOW_PAGES}/dags/{name}", in_airflow=True),)


def _line(incident: Incident, *, now: datetime) -> IncidentLine:
    ended = incident.resolved_at
    runs = f"{AIRFLOW_PAGES}/dags/{incident.dag_id}"
    return IncidentLine(
        about=incident.table or incident.dag_id,
        state="open" if ended is None else "resolved",
        tone=Tone.BAD if ended is None else Tone.GOOD,
        condition=incident.condition,
        message=incident.message,
        began=f"{incident.opened_at:%Y-%m-%d %H:%M} UTC, {ago(incident.opened_at, now=now)}",
        lasted=duration((ended or now) - incident.opened_at),
        times=incident.times,
        links=(
            Link(incident.dag_id, runs, in_airflow=True),
            Link("runs and logs", f"{runs}/tasks/{incident.task_id}", in_airflow=True),
            runbook_link(incident.runbook),
        ),
    )

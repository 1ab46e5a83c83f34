"""What ``tidemark status --check`` finds wrong with what should run and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from spark_jobs.names import Layer, TableName
from spark_jobs.serving.report.drift import drift_tellings
from spark_jobs.serving.report.status_tables import SILENT_AFTER, ago
from spark_jobs.serving.report.transactions import database_statuses

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.progress import StreamProgress

_SILENT, _REFUSED = "stream-silent", "stream-refused"
# By health: what happened when the query was last seen.
_GONE = {"silent": "last seen", "down": "should run and stopped"}
_WRONG = frozenset({"failed", "refused", "blocked"})
# Since the last batch; what is down for less than this comes back by itself more often than not.
WAITED_LONG = timedelta(minutes=5)
# Where as many are expected and none is heard of, it is not one of them that is gone.
FEWEST_OF_AN_APPLICATION = 2
_VIEW, _SINK, _WAITS = "continuous-view", "sink-behind", "refresh-waits"


@dataclass(frozen=True)
class Trouble:
    """Something that does not run as it should, and the runbook for it."""

    name: str
    what: str
    runbook: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}; see docs/runbooks/{self.runbook}.md"


def troubles(project: OpenProject, *, now: datetime) -> list[Trouble]:
    """What is silent, failed, refused, blocked, behind, waits or is not as declared; by name."""
    reports = {one.query: one for one in project.store.progress()}
    found = [
        *_troubles(project, reports, now),
        *_waiting(project),
        *_capture(project),
        *_drift(project),
        *_untold(project, now),
        *_behind(project, now),
    ]
    return sorted(found, key=lambda one: one.name)


def _waiting(project: OpenProject) -> Iterator[Trouble]:
    """Views whose next refresh is so large that it waits for a person."""
    from spark_jobs.planning.decision import ReasonCode

    for view in project.manifest.gold.values():
        last = project.store.attempts(view.name, limit=1)
        if last and last[0].reason_code == ReasonCode.WAITS_FOR_PERSON:
            yield Trouble(str(view.table_name), last[0].reason or "", _WAITS)


def _drift(project: OpenProject) -> Iterator[Trouble]:
    """Records that are not as their source declares, until somebody looked at them."""
    for one in drift_tellings(project):
        if one.to_review:
            name = str(TableName(Layer.BRONZE, one.drift.source))
            yield Trouble(name, one.words, "schema-drift")


def _untold(project: OpenProject, now: datetime) -> Iterator[Trouble]:
    """Publications of which other teams' DAGs have not heard for a while."""
    from spark_jobs.gold.telemetry.announcer import ASSET_UNKNOWN, NO_AIRFLOW, TASK_ENDS

    for cursor in project.store.asset_cursors().values():
        since = cursor.waits_since
        nobody = cursor.error in {ASSET_UNKNOWN, NO_AIRFLOW}
        if since is None or nobody or cursor.view not in project.manifest.gold:
            continue
        if now - since > TASK_ENDS + WAITED_LONG:
            name = str(project.manifest.gold[cursor.view].table_name)
            what = (
                f"its publication of {ago(since, now=now)} is no event in Airflow: {cursor.error}"
            )
            yield Trouble(name, what, "asset-events")


def _behind(project: OpenProject, now: datetime) -> Iterator[Trouble]:
    """Tables that hold back the views which show whole transactions."""
    for database in database_statuses(project, now=now):
        for table, since in database.behind.items():
            when = "never reached a commit" if since is None else f"last {ago(since, now=now)}"
            what = f"is behind the other tables of database {database.database}, {when}"
            yield Trouble(table, what, "table-behind")


def _capture(project: OpenProject) -> Iterator[Trouble]:
    """The connector, where it failed or left out changes."""
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.stack.connect import CONNECTOR
    from spark_jobs.stack.skipped import capture_problem

    sources = project.manifest.sources.values()
    if any(source.format is SourceFormat.DEBEZIUM for source in sources):
        problem = capture_problem(project.settings)
        if problem is not None:
            yield Trouble(f"connector {CONNECTOR}", problem, "connector-failed")


def _troubles(
    project: OpenProject, reports: Mapping[str, StreamProgress], now: datetime
) -> Iterator[Trouble]:
    from spark_jobs.state.stopped import stopped_on_purpose

    most = project.settings.streams.max_offsets_per_trigger
    on_purpose = stopped_on_purpose(project.settings.state)
    expected = list(_reporting(project))
    if (gone := _application_gone(expected, reports, now, on_purpose=on_purpose)) is not None:
        yield gone
        return
    for name in expected:
        report = reports.get(name)
        silent, failed = _runbooks(name)
        if report is None:
            yield Trouble(name, "never reported", silent)
            continue
        health = report.health(now=now, after=SILENT_AFTER, on_purpose=on_purpose)
        if health in _GONE:
            seen = ago(report.heartbeat_at, now=now)
            yield Trouble(name, f"{health}, {_GONE[health]} {seen}", silent)
        elif report.state.value in _WRONG or _waits_long(report, now):
            first = (report.error or "").strip().partition("\n")[0]
            yield Trouble(name, f"{report.state.value}: {first or 'no error was told'}", failed)
        elif (report.lag_records or 0) > most:
            yield Trouble(name, f"{report.lag_records:,} records behind", silent)


def _application_gone(
    expected: Sequence[str],
    reports: Mapping[str, StreamProgress],
    now: datetime,
    *,
    on_purpose: bool,
) -> Trouble | None:
    """One line where nothing that the application runs is heard of: it is the cause of all."""
    if len(expected) < FEWEST_OF_AN_APPLICATION:
        return None
    seen = [reports[name] for name in expected if name in reports]
    health = {one.health(now=now, after=SILENT_AFTER, on_purpose=on_purpose) for one in seen}
    if not health <= _GONE.keys():
        return None
    what = f"none of its {len(expected)} queries ever reported"
    if seen:
        last = ago(max(one.heartbeat_at for one in seen), now=now)
        what = f"down, none of its {len(expected)} queries was seen since {last}"
    return Trouble("streaming application", what, _SILENT)


def _waits_long(report: StreamProgress, now: datetime) -> bool:
    """Whether what it reads or writes has been out of reach for a while."""
    return report.state.value == "waiting" and now - report.at > WAITED_LONG


def _runbooks(name: str) -> tuple[str, str]:
    """For silence, and for an error."""
    from spark_jobs.state.progress import SINK_PREFIX

    if name.startswith(SINK_PREFIX):
        return _SINK, _SINK
    return (_VIEW, _VIEW) if name.startswith(f"{Layer.GOLD}.") else (_SILENT, _REFUSED)


def _reporting(project: OpenProject) -> Iterator[str]:
    """What the streaming application runs for this project, by the names of the reports."""
    from spark_jobs.definitions.vocabulary import RefreshPolicy
    from spark_jobs.state.progress import sink_query

    manifest = project.manifest
    for source in manifest.sources.values():
        if source.topic is not None:
            yield str(source.table_name)
    for entry in manifest.silver.values():
        if manifest.sources[entry.source].topic is not None:
            yield str(entry.table_name)
    for view in manifest.gold.values():
        if view.refresh is RefreshPolicy.CONTINUOUS:
            yield str(view.table_name)
    yield from map(sink_query, manifest.sinks)

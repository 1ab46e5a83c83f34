"""Finds problems for ``tidemark status --check``."""

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
_CONNECTOR, _SLOT = "connector-failed", "changes-lost"
# Text by health, before the time of the last heartbeat.
_GONE = {"silent": "last seen", "down": "should run and stopped"}
_WRONG = frozenset({"failed", "refused", "blocked"})
# Time since the last batch; shorter outages usually end by themselves.
WAITED_LONG = timedelta(minutes=5)
# If at least this many queries are expected and none reports, the application itself is down.
FEWEST_OF_AN_APPLICATION = 2
_DRIFT = "schema-drift"
_SERVER = "server-unreachable"
_VIEW, _SINK, _WAITS = "continuous-view", "sink-behind", "refresh-waits"


@dataclass(frozen=True)
class Trouble:
    """A problem, with its runbook.

    Attributes:
        name: of the table, sink or part that has it.
        what: the problem in words.
        runbook: name of the page.
        causes: names of tables and sinks that have a problem because of it.
    """

    name: str
    what: str
    runbook: str
    causes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.what}; see docs/runbooks/{self.runbook}.md"


def troubles(project: OpenProject, *, now: datetime) -> list[Trouble]:
    """All problems, sorted by name."""
    reports = {one.query: one for one in project.store.progress()}
    found = [
        *_troubles(project, reports, now),
        *_waiting(project),
        *_capture(project),
        *_drift(project),
        *_unsent_events(project, now),
        *_behind(project, now),
        *_certificates(project, now),
    ]
    return sorted(found, key=lambda one: one.name)


def first_to_solve(found: Sequence[Trouble]) -> Trouble:
    """The problem that probably causes the others: the one nearest to the sources."""
    order = (_SLOT, _CONNECTOR, _SILENT, _REFUSED, _DRIFT)
    return min(found, key=lambda one: order.index(one.runbook) if one.runbook in order else 9)


def _waiting(project: OpenProject) -> Iterator[Trouble]:
    """Views whose next refresh is so large that it waits for a person."""
    from spark_jobs.planning.decision import ReasonCode

    for view in project.manifest.gold.values():
        last = project.store.attempts(view.name, limit=1)
        if last and last[0].reason_code == ReasonCode.WAITS_FOR_PERSON:
            yield Trouble(str(view.table_name), last[0].reason or "", _WAITS)


def _drift(project: OpenProject) -> Iterator[Trouble]:
    """Differences from declarations that nobody has reviewed."""
    for one in drift_tellings(project):
        if one.to_review:
            name = str(TableName(Layer.BRONZE, one.drift.source))
            yield Trouble(name, one.words, _DRIFT)


def _unsent_events(project: OpenProject, now: datetime) -> Iterator[Trouble]:
    """Publications and verdicts whose asset events have been waiting for a while."""
    from spark_jobs.gold.telemetry.announcer import TASK_ENDS
    from spark_jobs.gold.telemetry.event_sender import ASSET_UNKNOWN, NO_AIRFLOW
    from spark_jobs.gold.telemetry.verdict_events import verdict_cursor

    cursors = project.store.asset_cursors()
    for view, entry in project.manifest.gold.items():
        for name, event in ((view, "publication"), (verdict_cursor(view), "verdict")):
            cursor = cursors.get(name)
            if cursor is None or cursor.waits_since is None:
                continue
            nobody = cursor.error in {ASSET_UNKNOWN, NO_AIRFLOW}
            if not nobody and now - cursor.waits_since > TASK_ENDS + WAITED_LONG:
                when = ago(cursor.waits_since, now=now)
                what = f"its {event} of {when} is no event in Airflow: {cursor.error}"
                yield Trouble(str(entry.table_name), what, "asset-events")


def _behind(project: OpenProject, now: datetime) -> Iterator[Trouble]:
    """Tables that lag behind and so delay views that show whole transactions."""
    for database in database_statuses(project, now=now):
        for table, since in database.behind.items():
            when = "never reached a commit" if since is None else f"last {ago(since, now=now)}"
            what = f"is behind the other tables of database {database.database}, {when}"
            yield Trouble(table, what, "table-behind")


def _capture(project: OpenProject) -> Iterator[Trouble]:
    """The connector, if it failed or missed changes."""
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.serving.source_dsn import source_dsn
    from spark_jobs.stack.connector import CONNECTOR, SLOT
    from spark_jobs.stack.skipped import capture_problem
    from spark_jobs.stack.slot import connector_slot_lost

    name = f"connector {CONNECTOR}"
    sources = project.manifest.sources.values()
    if not any(source.format is SourceFormat.DEBEZIUM for source in sources):
        return
    dsn = source_dsn(project.settings)
    if (behind := _log_behind(project, dsn)) is not None:
        yield Trouble(name, behind, _SLOT)
    elif connector_slot_lost(dsn):
        what = f"PostgreSQL has removed log that slot {SLOT!r} needed, so changes are lost"
        yield Trouble(name, what, _SLOT)
    elif (problem := capture_problem(project.settings)) is not None:
        yield Trouble(name, problem, _CONNECTOR)


def _log_behind(project: OpenProject, dsn: str | None) -> str | None:
    """What is wrong if the database's log ends before commits that the lake has."""
    import psycopg

    from spark_jobs.access.source_log import log_position, place
    from spark_jobs.errors import LakehouseError
    from spark_jobs.silver.check.log_position import newest_change
    from spark_jobs.storage.lake import Lake

    if dsn is None:
        return None
    try:
        newest = newest_change(Lake(project.settings.lake), project.store, project.manifest)
        position = log_position(dsn)
    except (psycopg.Error, LakehouseError):
        # A table that cannot be read is reported where it is read.
        return None
    if newest.position <= position:
        return None
    layer, _, _ = newest.table.partition(".")
    ends = f"its database's log is at {place(position)}"
    return (
        f"{ends}, but {layer} has commits at {place(newest.position)}: all changes count as older "
        "ones"
    )


def _certificates(project: OpenProject, now: datetime) -> Iterator[Trouble]:
    """Certificates that end soon; the stack renews its own when it starts."""
    if not project.settings.security.enabled:
        return
    from spark_jobs.access.secrets import secret_path
    from spark_jobs.stack.certificates import AUTHORITY_KEY, ending

    own = secret_path(project.settings, AUTHORITY_KEY).exists()
    remedy = "`make down` and `make up` renew it" if own else "replace the file"
    for name, end in ending(project.settings, now=now).items():
        word = "ends" if end > now else "ended"
        yield Trouble(f"certificate {name}", f"{word} on {end:%Y-%m-%d}: {remedy}", _SERVER)


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
            yield Trouble(name, f"{report.state.value}: {first or 'no error was reported'}", failed)
        elif (report.lag_records or 0) > most:
            yield Trouble(name, f"{report.lag_records:,} records behind", silent)


def _application_gone(
    expected: Sequence[str],
    reports: Mapping[str, StreamProgress],
    now: datetime,
    *,
    on_purpose: bool,
) -> Trouble | None:
    """One problem if no query of the application reports: it is the common cause."""
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
    return Trouble("streaming application", what, _SILENT, causes=tuple(expected))


def _waits_long(report: StreamProgress, now: datetime) -> bool:
    """Whether its input or output has been unreachable for a while."""
    return report.state.value == "waiting" and now - report.at > WAITED_LONG


def _runbooks(name: str) -> tuple[str, str]:
    """The runbooks for silence and for an error."""
    from spark_jobs.state.progress import SINK_PREFIX

    if name.startswith(SINK_PREFIX):
        return _SINK, _SINK
    return (_VIEW, _VIEW) if name.startswith(f"{Layer.GOLD}.") else (_SILENT, _REFUSED)


def _reporting(project: OpenProject) -> Iterator[str]:
    """Names of the queries that the streaming application runs for this project."""
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

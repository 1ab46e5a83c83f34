"""The status of sinks: last delivery, and versions behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.serving.report.status_tables import SILENT_AFTER, STYLES, ago, duration
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import SinkEntry
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.progress import StreamProgress

# State of a sink without any report.
NEW = "new"


@dataclass(frozen=True)
class SinkStatus:
    """The status of a sink.

    Attributes:
        state: as reported; ``silent`` if the report is old, ``new`` if there is none.
        version: delivered version of the table; None if it was never built.
        versions_behind: versions that are not delivered; None if unknown.
        behind: age of the oldest version that is not delivered.
        changes: number of changes in the last delivery.
    """

    sink: str
    table: str
    system: str
    target: str
    state: str
    version: int | None
    versions_behind: int | None
    behind: timedelta | None
    changes: int
    delivered_at: datetime | None
    error: str | None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes; ``behind`` in seconds, ``delivered_at`` in ISO 8601."""
        return {
            **vars(self),
            "behind": None if self.behind is None else self.behind.total_seconds(),
            "delivered_at": None if self.delivered_at is None else self.delivered_at.isoformat(),
        }


def sink_statuses(project: OpenProject, *, now: datetime) -> list[SinkStatus]:
    """The status of all sinks, by name."""
    from spark_jobs.state.progress import sink_query
    from spark_jobs.state.stopped import stopped_on_purpose
    from spark_jobs.storage.lake import Lake, TableLocations

    reports = {one.query: one for one in project.store.progress()}
    on_purpose = stopped_on_purpose(project.settings.state)
    locations = TableLocations(Lake(project.settings.lake), project.manifest)
    return [
        sink_status(
            sink,
            reports.get(sink_query(name)),
            locations.of(sink.table_name),
            now=now,
            on_purpose=on_purpose,
        )
        for name, sink in sorted(project.manifest.sinks.items())
    ]


def sink_status(
    sink: SinkEntry,
    report: StreamProgress | None,
    location: str,
    *,
    now: datetime,
    on_purpose: bool,
) -> SinkStatus:
    """The status of one sink, from its last report and its table's log at ``location``.

    ``on_purpose``: whether a person stopped the application.
    """
    from spark_jobs.storage import log

    newest = log.table_version(location)
    delivered = None if report is None or report.batch_id < 0 else report.batch_id
    versions = behind = None
    if newest is not None and delivered is not None and newest.version >= delivered:
        versions = newest.version - delivered
        at = log.committed_at(location, delivered + 1) if versions else None
        behind = now - at if at else timedelta()
    state = NEW
    if report is not None:
        state = report.health(now=now, after=SILENT_AFTER, on_purpose=on_purpose)
    return SinkStatus(
        sink=sink.name,
        table=sink.table,
        system=sink.system.value,
        target=sink.target,
        state=state,
        version=delivered,
        versions_behind=versions,
        behind=behind,
        changes=0 if report is None else report.records,
        delivered_at=None if report is None or delivered is None else report.at,
        error=None if report is None else report.error,
    )


def print_sinks(console: Console, sinks: Sequence[SinkStatus], *, now: datetime) -> None:
    """A row per sink, and the errors below the table."""
    console.print(sinks_table(sinks, now=now))
    for one in sinks:
        if one.error:
            console.print(f"{one.sink}: {one.error}", markup=False, highlight=False, soft_wrap=True)


def sinks_table(sinks: Sequence[SinkStatus], *, now: datetime) -> Table:
    """A row per sink."""
    table = FittedTable(title="sinks")
    for name in ("sink", "state"):
        table.add_column(name, no_wrap=True)
    table.add_column("from and to", overflow="fold")
    for name in ("behind", "delivered", "changes"):
        table.add_column(name, justify="right", overflow="fold")
    for one in sinks:
        delivered = "never"
        if one.delivered_at is not None:
            delivered = f"@{one.version} {ago(one.delivered_at, now=now)}"
        table.add_row(
            one.sink,
            Text(one.state, style=STYLES.get(one.state, "")),
            Text(f"{one.table} to {one.system} {one.target}"),
            behind_text(one),
            delivered,
            f"{one.changes:,}",
        )
    return table


def behind_text(one: SinkStatus) -> str:
    """How many versions are not delivered, and since when."""
    if one.versions_behind is None:
        return ""
    if not one.versions_behind or one.behind is None:
        return "0 versions"
    plural = "" if one.versions_behind == 1 else "s"
    return f"{one.versions_behind} version{plural}, {duration(one.behind)}"

"""What ``tidemark status --check`` finds wrong with what should run and report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.cli.status_tables import SILENT_AFTER, ago
from spark_jobs.names import Layer

if TYPE_CHECKING:
    from spark_jobs.cli.project import OpenProject
    from spark_jobs.state.progress import StreamProgress

_SILENT, _REFUSED = "stream-silent", "stream-refused"
_VIEW, _SINK = "continuous-view", "sink-behind"


@dataclass(frozen=True)
class Trouble:
    """Something that does not run as it should, and the runbook for it."""

    name: str
    what: str
    runbook: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what}; see docs/runbooks/{self.runbook}.md"


def troubles(project: OpenProject, *, now: datetime) -> list[Trouble]:
    """What is silent, failed, refused, held or more than a batch behind; by name."""
    reports = {one.query: one for one in project.store.progress()}
    return sorted(_troubles(project, reports, now), key=lambda one: one.name)


def _troubles(
    project: OpenProject, reports: Mapping[str, StreamProgress], now: datetime
) -> Iterator[Trouble]:
    from spark_jobs.state.progress import SINK_PREFIX

    for name in _streams(project):
        if name not in reports:
            yield Trouble(name, "never reported", _SILENT)
    most = project.settings.streams.max_offsets_per_trigger
    for name, report in reports.items():
        if name.startswith(SINK_PREFIX):
            if name.removeprefix(SINK_PREFIX) not in project.manifest.sinks:
                continue  # its declaration is gone, and so is what reported
            silent = failed = _SINK
        elif name.startswith(f"{Layer.GOLD}."):
            silent = failed = _VIEW
        else:
            silent, failed = _SILENT, _REFUSED
        if report.stale(now=now, after=SILENT_AFTER):
            yield Trouble(name, f"silent, last seen {ago(report.heartbeat_at, now=now)}", silent)
        elif report.state.value in {"failed", "refused", "held"}:
            first = (report.error or "").strip().partition("\n")[0]
            yield Trouble(name, f"{report.state.value}: {first or 'no error was told'}", failed)
        elif (report.lag_records or 0) > most:
            yield Trouble(name, f"{report.lag_records:,} records behind", silent)


def _streams(project: OpenProject) -> Iterator[str]:
    """The queries that the streaming application runs for this project."""
    sources = project.manifest.sources
    for source in sources.values():
        if source.topic is not None:
            yield str(source.table_name)
    for entry in project.manifest.silver.values():
        if sources[entry.source].topic is not None:
            yield str(entry.table_name)

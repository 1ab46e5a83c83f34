"""Collects which old table versions, and changes since them, are still needed, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark_jobs.names import Layer

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject


@dataclass(frozen=True)
class Need:
    """A needed version, or the changes since it.

    Attributes:
        table_id: id of the table; None: the current one.
        who: who needs it, as text.
    """

    table: str
    version: int
    table_id: str | None
    who: str

    @property
    def reason(self) -> str:
        """Why older versions are kept, as text."""
        return f"{self.who} needs version {self.version}"

    def concerns(self, table_id: str) -> bool:
        """Whether it is of the table with this id, not of one that was at the same place before."""
        return self.table_id in {None, table_id}


@dataclass(frozen=True)
class Kept:
    """How far back a table is kept.

    Attributes:
        since: versions from then on are kept; None: all of them.
        why: who needs more than the retention; empty if nobody does.
    """

    since: datetime | None
    why: str = ""


def needs_of(project: OpenProject, *, now: datetime) -> list[Need]:
    """What published views, open refreshes, ticks, sinks and streams still need."""
    return [
        *_views(project, now),
        *_environments(project, now),
        *_ticks(project, now),
        *_sinks(project),
        *_streams(project),
    ]


def kept_since(location: str, needs: Iterable[Need], *, retained: datetime) -> Kept:
    """How far back a table's files must be kept.

    If the commit time of a needed version is unknown, nothing is deleted: a person decides. A
    version keeps no files if the log has lost the changes since.

    Args:
        location: of the table.
        needs: needs of this table.
        retained: start of the retention.
    """
    from spark_jobs.storage import log

    newest = log.table_version(location)
    kept = Kept(retained)
    if newest is None:
        return kept
    for need in open_needs(location, needs, newest.table_id):
        at = log.committed_at(location, max(need.version, 0))
        if at is None:
            return Kept(None, f"{need.reason}, which has no log any more")
        # Change files are written before their commit, and clocks may differ.
        since = at - timedelta(hours=1)
        if need.version < newest.version and kept.since is not None and since < kept.since:
            kept = Kept(since, need.reason)
    return kept


def open_needs(location: str, needs: Iterable[Need], table_id: str) -> list[Need]:
    """The needs of the table with this id, without those whose first change the log has lost.

    Their readers start anew, whatever else stays, as after a rollback far back. A gap in the log is
    damage, and its needs stay open.
    """
    from spark_jobs.storage.log_files import oldest_entry

    mine = [one for one in needs if one.concerns(table_id)]
    oldest = oldest_entry(location) if mine else None
    return [one for one in mine if oldest is None or one.version + 1 >= oldest]


def _views(project: OpenProject, now: datetime) -> Iterator[Need]:
    """The inputs of published views, and of attempts that may still be published."""
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.base.publications import latest_publication
    from spark_jobs.planning.work import vector_in
    from spark_jobs.state.attempts import AttemptStatus

    context = GoldContext(project.settings, project.manifest, project.store)
    oldest = now - timedelta(days=project.settings.gold.staging_days)
    waiting = (
        AttemptStatus.PLANNED,
        AttemptStatus.STAGED,
        AttemptStatus.AUDITED,
        AttemptStatus.BLOCKED,
    )
    for view in sorted(project.manifest.gold):
        published = latest_publication(context.published_at(view))
        if published is not None:
            yield from _vector(published.watermark.vector, f"gold.{view}")
        for attempt in project.store.attempts(view, statuses=waiting, limit=100):
            if attempt.updated_at >= oldest:
                yield from _vector(vector_in(attempt), f"attempt {attempt.attempt_id}")


def _environments(project: OpenProject, now: datetime) -> Iterator[Need]:
    """The inputs of environments, so that refreshes after a promotion can be incremental.

    Environments that were not touched for as long as staged results are kept do not count: after
    their promotion the next refresh is full.
    """
    from spark_jobs.planning.vector import VersionVector

    oldest = now - timedelta(days=project.settings.gold.staging_days)
    for one in project.store.environments():
        if one.updated_at < oldest:
            continue
        for view in one.views.values():
            outside = [
                (table, version)
                for table, version in VersionVector.from_dict(view.vector)
                if not (table.layer is Layer.GOLD and table.name in one.views)
            ]
            yield from _vector(outside, f"environment {one.name}")


def _vector(vector: Any, who: str) -> Iterator[Need]:
    for table, version in vector:
        yield Need(str(table), version.version, version.table_id, who)


def _ticks(project: OpenProject, now: datetime) -> Iterator[Need]:
    since = now - timedelta(days=project.settings.gold.tick_days)
    for (table, table_id), version in project.store.oldest_pins(since=since).items():
        yield Need(table, version, table_id, "a pinned tick")


def _sinks(project: OpenProject) -> Iterator[Need]:
    from spark_jobs.state.progress import sink_query

    reports = {one.query: one for one in project.store.progress()}
    for name, sink in project.manifest.sinks.items():
        report = reports.get(sink_query(name))
        if report is not None and report.batch_id >= 0:
            yield Need(str(sink.table_name), report.batch_id, None, f"sink {name}")


def _streams(project: OpenProject) -> Iterator[Need]:
    """For each silver table, bronze from where its stream continues."""
    from spark_jobs.storage.checkpoints import last_committed, last_planned, planned
    from spark_jobs.storage.lake import Lake

    lake = Lake(project.settings.lake)
    for entry in project.manifest.silver.values():
        name = str(entry.table_name)
        checkpoint = lake.checkpoint(name, project.store.epoch(name))
        number = last_planned(checkpoint)
        ended = last_committed(checkpoint)
        batch = ended or (None if number is None else planned(checkpoint, number))
        if batch is not None:
            source = project.manifest.sources[entry.source]
            yield _stream(str(source.table_name), batch.offsets, name)


def _stream(table: str, offsets: Mapping[str, Any], silver: str) -> Need:
    # The offset names the next version; the one before is needed for comparison.
    version = int(offsets["reservoirVersion"]) - 1
    return Need(table, version, str(offsets["reservoirId"]), f"the stream of {silver}")

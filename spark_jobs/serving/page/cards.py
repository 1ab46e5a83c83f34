"""The cards of the page: one per table and sink; reads logs and reports, no Spark.

A table with an unreadable log gets a card too, with the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.errors import LakehouseError
from spark_jobs.serving.page.facts import NOTHING, Card, Tone
from spark_jobs.serving.page.history import history
from spark_jobs.serving.page.incident_lines import view_links
from spark_jobs.serving.page.trends import DAYS, Trend, trends
from spark_jobs.serving.report.quality import first_change
from spark_jobs.serving.report.sink_status import SinkStatus, behind_text, sink_status
from spark_jobs.serving.report.status_check import Trouble, troubles
from spark_jobs.serving.report.status_tables import (
    SILENT_AFTER,
    STYLES,
    ago,
    attempt_cell,
    duration,
    freshness_cell,
    published_cell,
    verdict_cell,
)

if TYPE_CHECKING:
    from spark_jobs.gold.base.freshness import ViewStatus
    from spark_jobs.graph.manifest import GoldEntry, SilverEntry, SinkEntry, SourceEntry
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.progress import StreamProgress

GOLD_RUNBOOK: Final = "gold-refresh"
# What most attempts of a quiet table are, and what is not well.
_TOLD: Final = ("skipped", "blocked", "failed")
# By the state of a gold view.
_RUNBOOKS: Final = {"rolled back": "gold-is-wrong", "waits": "refresh-waits"}
_TONES: Final = {"green": Tone.GOOD, "yellow": Tone.WARN, "red": Tone.BAD}
GOLD_HEADS = ("freshness", "audit", "rows changed", "published", "24 hours", "last attempt")
STREAM_HEADS = ("behind", "last batch", "seen", "error")
SILVER_HEADS = ("quarantine", *STREAM_HEADS)
SINK_HEADS = ("from and to", "behind", "delivered", "error")


class Cards:
    """Builds the cards, from data that is read once."""

    def __init__(self, project: OpenProject, now: datetime) -> None:
        from spark_jobs.gold.base.context import GoldContext
        from spark_jobs.state.stopped import stopped_on_purpose

        self._now = now
        self._stopped_on_purpose = stopped_on_purpose(project.settings.state)
        self._reports: Mapping[str, StreamProgress] = {
            one.query: one for one in project.store.progress()
        }
        self._context = GoldContext(project.settings, project.manifest, project.store)
        self._ended = project.store.outcomes(start=now - timedelta(days=1), end=now)
        start = now - timedelta(days=DAYS)
        self._published = project.store.publications(start=start, end=now)
        self.troubles = troubles(project, now=now)
        self._wrong: Mapping[str, Trouble] = {one.name: one for one in self.troubles}

    def source(self, entry: SourceEntry) -> Card:
        """The card of a source and its bronze table."""
        name, said = str(entry.table_name), entry.description or ""
        if entry.topic is not None:
            return self._stream(name, said, column=0, cells=())
        from spark_jobs.storage import log

        def delta() -> Card:
            newest = next(
                iter(log.commits(self._context.locations.of(entry.table_name), limit=1)), None
            )
            last = NOTHING if newest is None else ago(newest.timestamp, now=self._now)
            return Card(
                name=name,
                column=0,
                description=said,
                state="missing" if newest is None else entry.format.value,
                tone=Tone.WARN if newest is None else Tone.PLAIN,
                cells=(NOTHING, last, NOTHING, NOTHING),
                runbook=GOLD_RUNBOOK,
            )

        return self._guarded(delta, name, said, column=0, cells=len(STREAM_HEADS))

    def silver(self, entry: SilverEntry) -> Card:
        """The card of a silver table."""
        from spark_jobs.silver.check.quarantine import rejections

        name, said = str(entry.table_name), entry.description or ""

        def quarantined() -> Card:
            location = self._context.lake.quarantine(entry.name)
            found = rejections(entry.name, location)
            count = sum(one.records for one in found)
            text = ", ".join(f"{one.records:,} {one.reason}" for one in found) or "none"
            note = f"{count:,} in quarantine" if count else ""
            return self._stream(name, said, column=1, cells=(text,), note=note)

        return self._guarded(quarantined, name, said, column=1, cells=len(SILVER_HEADS))

    def gold(self, entry: GoldEntry) -> Card:
        """The card of a gold view."""
        from spark_jobs.gold.base.freshness import view_status

        name = str(entry.table_name)

        def view() -> Card:
            status = view_status(self._context, entry.name, now=self._now)
            state, tone = self._health(status)
            late = status.behind or None
            return Card(
                name=name,
                column=2 + entry.tier,
                description=entry.description,
                state=state,
                tone=tone,
                note=f"{duration(late)} behind" if late else "",
                cells=(
                    freshness_cell(status).plain,
                    verdict_cell(status.verdict).plain or NOTHING,
                    self._rows_changed(status),
                    published_cell(status, now=self._now).plain,
                    self._day(entry.name),
                    attempt_cell(status).plain,
                ),
                runbook=_runbook(entry, state),
                links=view_links(entry.name),
                trends=self._trends(entry),
                history=history(self._context.store, entry.name, now=self._now),
            )

        return self._guarded(
            view, name, entry.description, column=2 + entry.tier, cells=len(GOLD_HEADS)
        )

    def sink(self, entry: SinkEntry, *, column: int) -> Card:
        """The card of a sink.

        Args:
            entry: the sink.
            column: where the card lies, from 0 at the left.
        """
        from spark_jobs.state.progress import sink_query

        name = sink_query(entry.name)

        def delivery() -> Card:
            location = self._context.locations.of(entry.table_name)
            report = self._reports.get(name)
            one = sink_status(
                entry, report, location, now=self._now, on_purpose=self._stopped_on_purpose
            )
            return Card(
                name=name,
                column=column,
                description="",
                state=one.state,
                tone=self._tone(name, one.state),
                note=behind_text(one) if one.versions_behind else "",
                cells=(
                    f"{one.table} to {one.system} {one.target}",
                    behind_text(one) or NOTHING,
                    self._delivered(one),
                    one.error or NOTHING,
                ),
                runbook="sink-behind",
            )

        return self._guarded(delivery, name, "", column=column, cells=len(SINK_HEADS))

    def _stream(
        self, name: str, said: str, *, column: int, cells: tuple[str, ...], note: str = ""
    ) -> Card:
        report = self._reports.get(name)
        state, lag = "never reported", None
        shown = (NOTHING,) * len(STREAM_HEADS)
        if report is not None:
            state, lag = self._health_of(report), report.lag_records
            shown = (
                NOTHING if lag is None else f"{lag:,} records",
                NOTHING if report.batch_id < 0 else ago(report.at, now=self._now),
                ago(report.heartbeat_at, now=self._now),
                report.error or NOTHING,
            )
        return Card(
            name=name,
            column=column,
            description=said,
            state=state,
            tone=self._tone(name, state),
            note=note or (f"{lag:,} behind" if lag else ""),
            cells=(*cells, *shown),
            runbook="stream-silent",
        )

    def _health_of(self, report: StreamProgress) -> str:
        on_purpose = self._stopped_on_purpose
        return report.health(now=self._now, after=SILENT_AFTER, on_purpose=on_purpose)

    def _guarded(
        self, card: Callable[[], Card], name: str, said: str, *, column: int, cells: int
    ) -> Card:
        try:
            return card()
        except LakehouseError as error:
            return Card(
                name=name,
                column=column,
                description=said,
                state="unreadable",
                tone=Tone.BAD,
                cells=(*(NOTHING,) * (cells - 1), error.primary),
                runbook=GOLD_RUNBOOK,
            )

    def _health(self, status: ViewStatus) -> tuple[str, Tone]:
        """One word for a view: its worst state."""
        name = f"gold.{status.view}"
        if status.pinned is not None:
            return "rolled back", Tone.BAD
        if status.blocked:
            return "blocked", Tone.BAD
        if status.last is not None and status.last.status.value == "failed":
            return "failed", Tone.BAD
        if status.waits:
            return "waits", Tone.BAD
        if name in self._wrong:
            return self._wrong[name].what.partition(":")[0].partition(",")[0], Tone.BAD
        return status.freshness.value, self._tone(name, status.freshness.value)

    def _tone(self, name: str, state: str) -> Tone:
        return Tone.BAD if name in self._wrong else _TONES.get(STYLES.get(state, ""), Tone.PLAIN)

    def _rows_changed(self, status: ViewStatus) -> str:
        """Rows changed by the last publication; one without changes has a commit without rows."""
        from spark_jobs.storage.history import rows_of_commit

        if status.published_version is None:
            return NOTHING
        rows = rows_of_commit(self._context.published_at(status.view), status.published_version)
        return NOTHING if rows is None else f"{rows:,}"

    def _day(self, view: str) -> str:
        """Attempts of the last 24 hours that were skipped, failed or were blocked."""
        ended = self._ended.get(view)
        if not ended:
            return NOTHING
        counts = {status.value: count for status, count in ended.items()}
        other = (f"{counts[status]:,} {status}" for status in _TOLD if status in counts)
        total = sum(ended.values())
        attempts = f"{total:,} attempt{'' if total == 1 else 's'}"
        return ", ".join((attempts, *other))

    def _trends(self, entry: GoldEntry) -> tuple[Trend, ...]:
        seconds, locations = entry.freshness_seconds, self._context.locations
        return trends(
            [one for one in self._published if one.view == entry.name],
            now=self._now,
            target=None if seconds is None else timedelta(seconds=seconds),
            first_change=lambda before, after: first_change(locations, before, after),
        )

    def _delivered(self, one: SinkStatus) -> str:
        if one.delivered_at is None:
            return "never"
        when = ago(one.delivered_at, now=self._now)
        return f"{one.changes:,} changes {when}, version {one.version}"


def _runbook(entry: GoldEntry, state: str) -> str:
    continuous = entry.refresh is RefreshPolicy.CONTINUOUS
    return _RUNBOOKS.get(state, "continuous-view" if continuous else GOLD_RUNBOOK)

"""Waits of the demo: until every record has an outcome, and every view was refreshed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from spark_jobs.serving.project import OpenProject
from spark_jobs.settings import Settings
from spark_jobs.terminal.steps import Note, Steps

if TYPE_CHECKING:
    from spark_jobs.demo.airflow_api import AirflowApi
    from spark_jobs.demo.errors import DemoStepError
    from spark_jobs.demo.refreshes import ViewProgress
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.serving.report.balances import Balance

# A slow machine makes slow progress; a stream that hangs makes none.
STALLED_SECONDS = 300
REFRESH_SECONDS = 420
POLL_SECONDS = 2
LONGEST_PAUSE_SECONDS = 16
RECORDS = "wait until every record has its outcome"
REFRESHES = "wait until schedule and streams have refreshed the views that they have so far"


@dataclass(frozen=True)
class Opened:
    """The project, and its lake with one Spark session for all further steps."""

    project: OpenProject
    gold: GoldContext


@contextmanager
def opened(settings: Settings) -> Iterator[Opened]:
    """Open the running stack's project."""
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.state.store import ControlStore

    manifest = Manifest.read(settings.manifest_file)
    with ControlStore.open(settings.control_url) as store:
        gold = GoldContext(settings, manifest, store)
        try:
            yield Opened(OpenProject(settings, manifest, store), gold)
        finally:
            gold.close()


def drain(lake: Opened, steps: Steps) -> list[Balance]:
    """Wait until every record has its outcome and silver equals Postgres.

    Computing the balances competes with the streams for the cores, so it is done when the streams
    report that everything arrived, and repeated with growing pauses until all are balanced.

    Raises:
        DemoStepError: no more progress; it names the first table that is not balanced.
    """
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.demo.arrivals import arrivals
    from spark_jobs.serving.report.balances import balances
    from spark_jobs.serving.source_dsn import source_dsn

    access = kafka_access(lake.project.settings, Principal.STREAMS)
    dsn, topics = source_dsn(lake.project.settings), Topics(access)
    pauses = Pauses()
    with steps.step(RECORDS) as note:
        while True:
            coming = arrivals(lake.project, topics)
            pending = sum(one.pending for one in coming)
            arrived = sum(not one.pending for one in coming)
            if pending:
                note(f"{pending:,} on their way, {arrived} of {len(coming)} tables have all")
            if not pending or pauses.stalled:
                found = list(balances(lake.project, session=lambda: lake.gold.spark, dsn=dsn))
                waiting = [one for one in found if one.verdict != "balanced"]
                if not waiting:
                    return found
                note(f"{len(found) - len(waiting)} of {len(found)} tables balance")
                if pauses.stalled:
                    raise stalled(waiting[0])
            time.sleep(pauses.after(pending))


@dataclass
class Pauses:
    """Pauses between two checks, and detection of a stall."""

    seconds: float = POLL_SECONDS
    pending: int = -1
    moved_at: float = field(default_factory=time.monotonic)

    @property
    def stalled(self) -> bool:
        """Whether there was no progress for too long."""
        return time.monotonic() - self.moved_at > STALLED_SECONDS

    def after(self, pending: int) -> float:
        """Seconds until the next check, given the number of records in flight."""
        if pending != self.pending:
            self.pending, self.moved_at = pending, time.monotonic()
            self.seconds = POLL_SECONDS
        elif not pending:
            self.seconds = min(2 * self.seconds, LONGEST_PAUSE_SECONDS)
        return self.seconds


def stalled(balance: Balance) -> DemoStepError:
    """The error of a wait without progress."""
    from spark_jobs.demo.errors import DemoStepError

    first = "; ".join([f"silver.{balance.silver}: {balance.verdict}", *balance.problems[:1]])
    problem = f"nothing changed for {STALLED_SECONDS} seconds, and {first}"
    hint = 'Look at the streams with "tidemark status" and "make logs PART=streams".'
    return DemoStepError(RECORDS, problem, hint=hint)


def wait_for_refreshes(gold: GoldContext, steps: Steps, *, since: datetime) -> list[ViewProgress]:
    """Wait until scheduler and streams have refreshed their views with all records.

    Raises:
        DemoStepError: a result is blocked by its gate, or it takes too long.
    """
    from spark_jobs.demo.airflow_api import AirflowApi

    deadline = time.monotonic() + REFRESH_SECONDS
    with steps.step(REFRESHES) as note, AirflowApi(gold.settings) as airflow:
        airflow.log_in()
        while True:
            names = sorted([*scheduled_views(gold), *continuous_views(gold)])
            views = [progress_of(name, gold, airflow, since=since) for name in names]
            check(views, late=time.monotonic() > deadline)
            if all(view.complete for view in views):
                return views
            note_progress(views, note)
            time.sleep(POLL_SECONDS)


def scheduled_views(gold: GoldContext) -> list[str]:
    """The views that Airflow refreshes by schedule, by name."""
    from spark_jobs.definitions.vocabulary import RefreshPolicy

    first = gold.settings.gold.scheduled_at_first
    return [
        name
        for name, entry in sorted(gold.manifest.gold.items())
        if entry.refresh is RefreshPolicy.MICRO_BATCH and (not first or name in first)
    ]


def continuous_views(gold: GoldContext) -> list[str]:
    """The views that the streams refresh, by name."""
    from spark_jobs.definitions.vocabulary import RefreshPolicy

    entries = sorted(gold.manifest.gold.items())
    return [name for name, entry in entries if entry.refresh is RefreshPolicy.CONTINUOUS]


def progress_of(
    view: str, gold: GoldContext, airflow: AirflowApi, *, since: datetime
) -> ViewProgress:
    """The progress of one view."""
    from spark_jobs.demo.refreshes import view_progress
    from spark_jobs.gold.base.freshness import Freshness, view_status
    from spark_jobs.state.types import utc_now

    status = view_status(gold, view, now=utc_now())
    return view_progress(
        view,
        runs=airflow.scheduled_runs(view),
        attempts=gold.store.attempts(view, limit=50),
        since=since,
        fresh=status.freshness is Freshness.CURRENT,
    )


def check(views: list[ViewProgress], *, late: bool) -> None:
    """Raise an error if waiting longer would not help.

    Raises:
        DemoStepError: a result is blocked by its gate, or the time is over.
    """
    from spark_jobs.demo.errors import DemoStepError

    hint = 'Open the DAG in Airflow, or run "tidemark status" and "tidemark explain --all".'
    blocked = [view.view for view in views if view.blocked]
    if blocked:
        raise DemoStepError(REFRESHES, f"the gate blocks {', '.join(blocked)}", hint=hint)
    if late:
        missing = ", ".join(view.view for view in views if not view.complete)
        problem = f"{missing} not refreshed within {REFRESH_SECONDS} seconds"
        raise DemoStepError(REFRESHES, problem, hint=hint)


def note_progress(views: list[ViewProgress], note: Note) -> None:
    """Print the progress of the views."""
    published = sum(view.published is not None for view in views)
    complete = sum(view.complete for view in views)
    note(f"{published} of {len(views)} published, {complete} with all that came in")

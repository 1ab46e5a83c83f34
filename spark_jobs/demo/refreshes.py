"""How far the scheduled refreshes have come: Airflow's runs joined with the ledger's attempts.

Airflow knows who made a run and how it ended; the ledger knows what the run published. The tick,
which is the end of the run's interval, connects them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.demo.airflow_api import ScheduledRun
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt

CURRENT = {AttemptStatus.PUBLISHED, AttemptStatus.SKIPPED, AttemptStatus.SUPERSEDED}


@dataclass(frozen=True)
class ScheduledRefresh:
    """A scheduled run that succeeded, and the attempt that it made."""

    run: ScheduledRun
    attempt: RefreshAttempt

    @property
    def rows(self) -> int:
        """Rows of the result that it computed; 0 where it skipped."""
        return int((self.attempt.actual or {}).get("rows") or 0)


@dataclass(frozen=True)
class ViewProgress:
    """A view on its way.

    Attributes:
        published: the newest scheduled refresh that published rows.
        current: a scheduled refresh of a tick after the asked moment.
        held: an attempt that the quality gate holds, with no later success.
    """

    view: str
    published: ScheduledRefresh | None
    current: ScheduledRefresh | None
    held: RefreshAttempt | None

    @property
    def complete(self) -> bool:
        return self.published is not None and self.current is not None


def tick_of(run: ScheduledRun) -> str:
    """The tick that the run's attempts carry.

    >>> tick_of(ScheduledRun("r", "success", datetime(2026, 3, 1, 12, 5, tzinfo=UTC)))
    '2026-03-01T12:05:00Z'
    """
    return run.interval_end.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def view_progress(
    view: str,
    *,
    runs: Iterable[ScheduledRun],
    attempts: Iterable[RefreshAttempt],
    since: datetime,
    after: datetime | None,
) -> ViewProgress:
    """Judge how far a view has come.

    Args:
        view: the gold view.
        runs: its scheduled runs.
        attempts: its attempts, the newest first.
        since: publications count when their tick is not older.
        after: the moment from which on nothing came in any more; None while something does.
    """
    by_tick = {tick_of(run): run for run in runs}
    newest = list(attempts)
    refreshes = [
        ScheduledRefresh(by_tick[one.tick], one)
        for one in newest
        if one.tick in by_tick and by_tick[one.tick].state == "success"
    ]
    recent = [one for one in refreshes if one.run.interval_end >= since]
    published = [
        one for one in recent if one.attempt.status is AttemptStatus.PUBLISHED and one.rows
    ]
    current = [
        one
        for one in recent
        if after is not None and one.run.interval_end > after and one.attempt.status in CURRENT
    ]
    held = newest[0] if newest and newest[0].status is AttemptStatus.HELD else None
    return ViewProgress(view, next(iter(published), None), next(iter(current), None), held)

"""The progress of refreshes: Airflow's runs joined with the ledger's attempts.

Airflow knows the origin and the state of a run; the ledger knows what it published. They are joined
by the tick, which is the end of the run's interval. Continuous views are in the ledger only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.demo.airflow_api import ScheduledRun
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.ticks import CONTINUOUS


@dataclass(frozen=True)
class OwnRefresh:
    """A scheduled or continuous refresh.

    Attributes:
        run: the scheduled run that succeeded; None for a refresh by the streaming application.
    """

    run: ScheduledRun | None
    attempt: RefreshAttempt

    @property
    def rows(self) -> int:
        """Number of rows of its result; 0 if it was skipped."""
        return int((self.attempt.actual or {}).get("rows") or 0)


@dataclass(frozen=True)
class ViewProgress:
    """The progress of a view.

    Attributes:
        published: the scheduled or continuous refresh of the newest publication; None if another
            refresh published it, or if it has no row.
        fresh: the newest publication contains every change of the inputs.
        blocked: an attempt that the quality gate blocked, without a later success.
    """

    view: str
    published: OwnRefresh | None
    fresh: bool
    blocked: RefreshAttempt | None

    @property
    def complete(self) -> bool:
        return self.published is not None and self.fresh


def tick_of(run: ScheduledRun) -> str:
    """The tick of the run's attempts.

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
    fresh: bool,
) -> ViewProgress:
    """The progress of a view.

    Args:
        view: the gold view.
        runs: its scheduled runs.
        attempts: its attempts, the newest first.
        since: older publications, by their tick or start, do not count.
        fresh: whether the newest publication contains every change of the inputs.
    """
    succeeded = {
        tick_of(run): run for run in runs if run.state == "success" and run.interval_end >= since
    }
    newest = list(attempts)
    last = next((one for one in newest if one.status is AttemptStatus.PUBLISHED), None)
    published = None
    if last is not None and last.tick in succeeded:
        published = OwnRefresh(succeeded[last.tick], last)
    elif last is not None and last.tick == CONTINUOUS and last.started_at >= since:
        published = OwnRefresh(None, last)
    if published is not None and not published.rows:
        published = None
    blocked = newest[0] if newest and newest[0].status is AttemptStatus.BLOCKED else None
    return ViewProgress(view, published, fresh, blocked)

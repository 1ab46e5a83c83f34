"""How far refreshes have come: Airflow's runs joined with the ledger's attempts.

Airflow knows who made a run and how it ended; the ledger knows what the run published. The tick,
which is the end of the run's interval, connects them. Of a continuous view the ledger knows all.
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
    """A refresh that the project made by itself.

    Attributes:
        run: the scheduled run that succeeded; None where the streaming application follows.
    """

    run: ScheduledRun | None
    attempt: RefreshAttempt

    @property
    def rows(self) -> int:
        """Rows of the result that it computed; 0 where it skipped."""
        return int((self.attempt.actual or {}).get("rows") or 0)


@dataclass(frozen=True)
class ViewProgress:
    """A view on its way.

    Attributes:
        published: the refresh that made the newest publication, by schedule or continuously; None
            while that is somebody else's, or holds no row.
        fresh: every change of the inputs is in the newest publication.
        blocked: an attempt that the quality gate blocks, with no later success.
    """

    view: str
    published: OwnRefresh | None
    fresh: bool
    blocked: RefreshAttempt | None

    @property
    def complete(self) -> bool:
        return self.published is not None and self.fresh


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
    fresh: bool,
) -> ViewProgress:
    """Judge how far a view has come.

    Args:
        view: the gold view.
        runs: its scheduled runs.
        attempts: its attempts, the newest first.
        since: a publication counts when its tick, or what followed its inputs, is not older.
        fresh: whether every change of the inputs is in the newest publication.
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

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.demo.airflow_api import ScheduledRun
from spark_jobs.demo.refreshes import ViewProgress, tick_of, view_progress
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.ticks import CONTINUOUS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def a_run(minute: int, state: str = "success") -> ScheduledRun:
    return ScheduledRun(f"scheduled__{minute}", state, NOON + minute * MINUTE)


def an_attempt(
    minute: int | None, status: AttemptStatus = AttemptStatus.PUBLISHED, *, rows: int | None = 3
) -> RefreshAttempt:
    tick = "manual__x" if minute is None else tick_of(a_run(minute))
    return RefreshAttempt(
        attempt_id=f"a{minute}",
        view="orders_by_day",
        tick=tick,
        status=status,
        epoch=1,
        actual=None if rows is None else {"rows": rows},
        started_at=NOON,
        updated_at=NOON,
    )


def judge(
    runs: list[ScheduledRun], attempts: list[RefreshAttempt], *, fresh: bool = True
) -> ViewProgress:
    return view_progress("orders_by_day", runs=runs, attempts=attempts, since=NOON, fresh=fresh)


def continuous(minute: int) -> RefreshAttempt:
    return replace(an_attempt(None), tick=CONTINUOUS, started_at=NOON + minute * MINUTE)


def test_a_continuous_publication_counts_without_any_run():
    progress = judge([], [continuous(1)])
    assert progress.complete
    assert progress.published.run is None
    assert judge([], [continuous(-1)]).published is None, "before the demo began"


def test_a_publication_by_a_scheduled_run_counts():
    progress = judge([a_run(1)], [an_attempt(1)])
    assert progress.published is not None
    assert progress.published.rows == 3
    assert progress.complete


@pytest.mark.parametrize(
    ("runs", "attempts"),
    [
        pytest.param([], [an_attempt(1)], id="nobody scheduled it"),
        pytest.param([a_run(1)], [an_attempt(None)], id="triggered by hand"),
        pytest.param([a_run(1, "running")], [an_attempt(1)], id="the run has not ended"),
        pytest.param([a_run(1, "failed")], [an_attempt(1)], id="the run failed"),
        pytest.param([a_run(1)], [an_attempt(1, rows=0)], id="published nothing"),
        pytest.param([a_run(1)], [an_attempt(1, AttemptStatus.STAGED)], id="not published yet"),
        pytest.param([a_run(-1)], [an_attempt(-1)], id="before the demo began"),
    ],
)
def test_only_a_successful_scheduled_publication_counts(
    runs: list[ScheduledRun], attempts: list[RefreshAttempt]
):
    assert judge(runs, attempts).published is None


def test_a_view_that_lacks_a_change_is_not_complete():
    progress = judge([a_run(1)], [an_attempt(1)], fresh=False)
    assert progress.published is not None
    assert not progress.complete


def test_a_later_skip_leaves_the_publication_as_it_is():
    skipped = an_attempt(5, AttemptStatus.SKIPPED, rows=None)
    assert judge([a_run(1), a_run(5)], [skipped, an_attempt(1)]).complete


def test_the_newest_publication_counts():
    assert not judge([a_run(1)], [an_attempt(None), an_attempt(1)]).complete


def test_a_blocked_attempt_is_reported_until_a_later_one_passes():
    blocked = an_attempt(2, AttemptStatus.BLOCKED)
    assert judge([a_run(2, "failed")], [blocked, an_attempt(1)]).blocked == blocked
    assert judge([a_run(3), a_run(2, "failed")], [an_attempt(3), blocked]).blocked is None

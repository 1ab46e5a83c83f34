from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.gold.base.freshness import Freshness, ViewStatus
from spark_jobs.serving.report.batches_in_work import BatchInWork
from spark_jobs.serving.report.silver_verdicts import silver_verdicts_table
from spark_jobs.serving.report.status_tables import (
    ago,
    duration,
    history_table,
    streams_table,
    views_table,
)
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.batches import JudgedBatches, SilverBatch
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.progress import StreamProgress, StreamState

NOW = datetime(2024, 5, 2, 12, tzinfo=UTC)
ATTEMPT = RefreshAttempt(
    attempt_id="a1",
    view="daily",
    tick="t1",
    status=AttemptStatus.PUBLISHED,
    decision="full",
    reason="first build",
    epoch=1,
    started_at=NOW - timedelta(minutes=5),
    updated_at=NOW - timedelta(minutes=4),
    actual={"rows": 12345, "seconds": {"plan": 0.2, "stage": 3.1}},
    published_version=4,
)
VIEW = ViewStatus(
    view="daily",
    policy=RefreshPolicy.CONTINUOUS,
    published_version=4,
    published_at=NOW - timedelta(minutes=4),
    rule="full",
    freshness=Freshness.CURRENT,
    behind=timedelta(),
    target=timedelta(minutes=30),
    last=ATTEMPT,
    verdict={"outcome": "warned", "expectations": 5, "failed": 1},
    blocked=False,
)
STREAM = StreamProgress(
    query="bronze.orders",
    batch_id=7,
    records=1200,
    at=NOW - timedelta(seconds=20),
    heartbeat_at=NOW - timedelta(seconds=3),
    lag_records=4000,
)


def shown(table: Table) -> str:
    out = io.StringIO()
    Console(file=out, width=220).print(table)
    return out.getvalue()


def view(**changed: Any) -> str:
    return shown(views_table([replace(VIEW, **changed)], now=NOW))


def test_a_current_view() -> None:
    text = view()
    for part in (
        "daily",
        "continuous",
        "4 min ago @4 full",
        "current (target 30 min)",
        "published; full: first build",
        "warned 4/5",
    ):
        assert part in text


def test_a_late_view_says_by_how_much() -> None:
    assert "late 2 h (target 30 min)" in view(freshness=Freshness.LATE, behind=timedelta(hours=2))


def test_a_blocked_view_says_so_once() -> None:
    blocked = replace(ATTEMPT, status=AttemptStatus.BLOCKED)
    assert "blocked; full: first build" in view(blocked=True, last=blocked)
    assert "blocked; skipped; " in view(
        blocked=True, last=replace(ATTEMPT, status=AttemptStatus.SKIPPED)
    )


def test_a_view_that_was_never_refreshed() -> None:
    text = view(
        published_version=None,
        published_at=None,
        freshness=Freshness.UNPUBLISHED,
        behind=None,
        target=None,
        last=None,
        verdict=None,
    )
    for part in ("never", "unpublished", "none"):
        assert part in text


def test_a_stream_with_its_lag() -> None:
    text = shown(streams_table([STREAM], now=NOW))
    for part in ("running", "4,000 records", "7", "1,200", "20 s ago", "3 s ago"):
        assert part in text


@pytest.mark.parametrize(
    ("state", "on_purpose", "word"),
    [
        (StreamState.RUNNING, False, "silent"),
        (StreamState.RUNNING, True, "silent"),
        (StreamState.STOPPED, False, "down"),
        (StreamState.STOPPED, True, "stopped"),
    ],
)
def test_a_stream_that_is_not_heard_of(state: StreamState, word: str, *, on_purpose: bool) -> None:
    old = replace(STREAM, state=state, heartbeat_at=NOW - timedelta(minutes=3))
    assert word in shown(streams_table([old], now=NOW, on_purpose=on_purpose))


def cells(table: Table) -> list[dict[str, str]]:
    """The rows of a table: what stands in which column."""
    columns = {str(one.header): [str(cell) for cell in one.cells] for one in table.columns}
    return [{name: values[at] for name, values in columns.items()} for at in range(table.row_count)]


def test_each_column_of_the_streams_has_its_own_value() -> None:
    refused = replace(
        STREAM,
        query="silver.orders",
        batch_id=-1,
        lag_records=None,
        state=StreamState.REFUSED,
        error="a required column is gone",
    )
    in_work = {"silver.orders": BatchInWork(0, 500_000, NOW - timedelta(minutes=6))}
    assert cells(streams_table([STREAM, refused], now=NOW, in_work=in_work)) == [
        {
            "query": "bronze.orders",
            "state": "running",
            "behind": "4,000 records",
            "in work": "",
            "last batch": "7",
            "records": "1,200",
            "ended": "20 s ago",
            "seen": "3 s ago",
            "error": "",
        },
        {
            "query": "silver.orders",
            "state": "refused",
            "behind": "",
            "in work": "500,000 records, 6 min",
            # Nothing has ended yet.
            "last batch": "",
            "records": "",
            "ended": "",
            "seen": "3 s ago",
            "error": "a required column is gone",
        },
    ]


def test_each_column_of_the_history_has_its_own_value() -> None:
    maintained = replace(
        ATTEMPT,
        tick="t2",
        decision="incremental",
        rule="grouped",
        reason="3 keys touched",
        actual=None,
        published_version=None,
        error="publish: it broke",
    )
    passed = {
        "outcome": "released",
        "expectations": 5,
        "failed": 2,
        "released_by": "ann@host",
        "release_reason": "known",
        "released_rules": 2,
    }
    released = replace(ATTEMPT, verdict=passed)
    first, second = cells(history_table([maintained, released], now=NOW))
    assert first == {
        "started": "5 min ago",
        "tick": "t2",
        "status": "published",
        "decision and reason": "incremental (grouped): 3 keys touched",
        "rows": "",
        "seconds": "",
        "version": "",
        "verdict": "",
        "remark": "publish: it broke",
    }
    assert (second["rows"], second["seconds"], second["version"]) == ("12,345", "3.3", "4")
    assert second["verdict"] == "released 3/5"
    assert second["remark"] == "released by ann@host: known (2 failed)"


def test_a_view_says_what_keeps_it_before_what_was_decided() -> None:
    pinned = PinnedView(view="daily", version=3, who="ann", reason="wrong", replay_id="r1")
    (row,) = cells(views_table([replace(VIEW, pinned=pinned, waits=True)], now=NOW))
    assert row["last attempt"] == (
        "rolled back to version 3, pinned by ann; waits; published; full: first build"
    )
    assert row["view"] == "daily\ncontinuous"
    assert row["published"] == "4 min ago @4 full"


def test_the_history_sums_the_steps_and_keeps_errors_short() -> None:
    failed = replace(ATTEMPT, status=AttemptStatus.FAILED, error="stage: it broke\n  Detail: long")
    text = shown(history_table([ATTEMPT, failed], now=NOW))
    for part in ("12,345", "3.3", "stage: it broke"):
        assert part in text
    assert "Detail" not in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3661, "1 h 1 min"), (90_061, "1 d 1 h")],
)
def test_durations_have_two_units_at_most(seconds: float, words: str) -> None:
    assert duration(timedelta(seconds=seconds)) == words


def test_a_clock_that_is_ahead_is_no_negative_age() -> None:
    assert ago(NOW + timedelta(seconds=5), now=NOW) == "0 s ago"


def test_a_silver_table_shows_its_last_verdict_and_its_last_failure() -> None:
    failed = SilverBatch(
        silver="orders",
        epoch=1,
        batch_id=6,
        records=3,
        at=NOW - timedelta(hours=2),
        outcome="warned",
        verdict={
            "expectations": 4,
            "failed": 1,
            "results": [{"message": "rule of amount failed: 2 of 3 values do not fit"}],
        },
    )
    last = replace(
        failed,
        batch_id=9,
        at=NOW - timedelta(seconds=5),
        outcome="passed",
        verdict={"expectations": 4, "failed": 0, "results": []},
    )
    told = JudgedBatches(last=last, judged=1200, failed=7, failing=failed)
    text = shown(silver_verdicts_table([told], now=NOW))

    for words in (
        "orders",
        "passed 4/4, 5 s ago",
        "7 of 1,200",
        "rule of amount failed: 2 of 3 values do not fit (batch 6, 2 h ago)",
    ):
        assert words in text

"""When the streaming application serves."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.streams import NAME, probe_streams, silent_streams
from spark_jobs.state.progress import StreamProgress, StreamState, sink_query
from spark_jobs.state.store import ControlStore


@pytest.fixture
def started(tmp_path: Path) -> Settings:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    record = settings.state / "run" / f"{NAME}.pid"
    record.parent.mkdir(parents=True)
    record.touch()
    return settings


def report(settings: Settings, query: str, state: str, *, ago: float = -1) -> None:
    """A query's sign of life, some seconds ago."""
    at = datetime.now(UTC) - timedelta(seconds=ago)
    row = StreamProgress(
        query=query, batch_id=0, records=0, at=at, state=StreamState(state), heartbeat_at=at
    )
    with ControlStore.open(settings.control_url) as store:
        store.record_progress(row)


@pytest.mark.parametrize(
    ("states", "lacks"),
    [
        ([], "has reported no query yet"),
        (["running", "starting"], "query q1 is starting"),
        (["running", "failed"], "query q1 is failed"),
        (["running", "running"], None),
        # The others run, and only a person can decide about this one.
        (["running", "refused"], None),
    ],
)
def test_it_serves_once_each_query_reports(
    started: Settings, states: list[str], lacks: str | None
) -> None:
    for index, state in enumerate(states):
        report(started, f"q{index}", state)
    assert probe_streams(started) == lacks


@pytest.mark.parametrize("state", ["starting", "running", "waiting", "blocked", "failed"])
def test_the_state_of_a_continuous_view_does_not_block_the_start(
    started: Settings, state: str
) -> None:
    report(started, "bronze.orders", "running")
    report(started, "gold.totals", state)
    assert probe_streams(started) is None


def test_a_continuous_view_without_heartbeats_is_silent(started: Settings) -> None:
    record = started.state / "run" / f"{NAME}.pid"
    os.utime(record, (0, 0))
    report(started, "bronze.orders", "running")
    report(started, "gold.totals", "running", ago=100)
    assert probe_streams(started) == "query gold.totals is silent"


def test_a_sink_that_is_down_is_no_lack_of_the_application(started: Settings) -> None:
    now = datetime.now(UTC) + timedelta(seconds=1)
    with ControlStore.open(started.control_url) as store:
        store.record_heartbeat("bronze.orders", at=now)
        store.record_heartbeat(sink_query("a"), at=now, state=StreamState.WAITING, error="down")
    assert probe_streams(started) is None


@pytest.mark.parametrize("state", ["starting", "waiting", "failed", "refused"])
def test_one_that_cannot_serve_is_alive_as_long_as_it_reports(
    started: Settings, state: str
) -> None:
    report(started, "bronze.orders", "running")
    report(started, "bronze.clicks", state)
    assert silent_streams(started) is None


def test_a_query_without_heartbeats_is_silent(started: Settings) -> None:
    assert silent_streams(started) == "has reported no query yet"
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    os.utime(started.state / "run" / f"{NAME}.pid", (long_ago.timestamp(),) * 2)
    report(started, "bronze.orders", "running")
    report(started, "bronze.clicks", "waiting", ago=61)
    assert silent_streams(started) == "query bronze.clicks is silent"

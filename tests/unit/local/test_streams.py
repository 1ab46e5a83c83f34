"""When the streaming application serves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.local.streams import NAME, probe_streams
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.store import ControlStore


@pytest.fixture
def started(tmp_path: Path) -> Settings:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    record = settings.state / "run" / f"{NAME}.pid"
    record.parent.mkdir(parents=True)
    record.touch()
    return settings


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
    now = datetime.now(UTC) + timedelta(seconds=1)
    with ControlStore.open(started.control_url) as store:
        for index, state in enumerate(states):
            store.record_progress(
                StreamProgress(
                    query=f"q{index}",
                    batch_id=0,
                    records=0,
                    at=now,
                    state=StreamState(state),
                    heartbeat_at=now,
                )
            )
    assert probe_streams(started) == lacks

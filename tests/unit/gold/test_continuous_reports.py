"""What continuous views report while the streams beside them start."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from spark_jobs.gold.continuous.loop import ContinuousGold
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import load_settings
from spark_jobs.state.progress import StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now


def test_views_of_an_earlier_run_are_starting_while_streams_start(tmp_path: Path) -> None:
    long_ago = utc_now() - timedelta(hours=1)
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        for query in ("gold.totals", "silver.orders"):
            store.record_heartbeat(query, at=long_ago, state=StreamState.STOPPED)
        gold = ContinuousGold(load_settings(tmp_path), store, Manifest)
        gold.report_starting()
        view, stream = store.progress()
        assert (view.query, view.state) == ("gold.totals", StreamState.STARTING)
        assert view.heartbeat_at > long_ago
        assert stream.state is StreamState.STOPPED
        gold.report()
        gold.report_starting()
        assert next(one.heartbeat_at for one in store.progress()) == view.heartbeat_at

"""Sinks run side by side; one that is down keeps no other waiting, and says what is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.sinks import runner
from spark_jobs.sinks.runner import SinkRunner
from spark_jobs.sinks.target import Addresses
from spark_jobs.sinks.verify import verify_sink
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from tests.unit.sinks.conftest import Make, Table, rows


def wait(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_sink_that_is_down_delays_no_other(
    table: Table, make: Make, tmp_path: Path, addresses: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "FIRST_PAUSE_SECONDS", 0.01)
    table.create(rows({1: "Ann"}))
    up, down = make(SinkSystem.POSTGRES), make(SinkSystem.REDIS)
    down.addresses = lambda: Addresses(redis=f"unix://{tmp_path}/nowhere")
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:

        def reports() -> dict[str, StreamProgress]:
            return {one.query: one for one in store.progress()}

        sinks = SinkRunner({"up": up, "down": down}, store, trigger_seconds=0.02)
        sinks.start()
        try:
            table.upsert(rows({2: "Bob"}))
            wait(lambda: "sink.up" in reports() and reports()["sink.up"].batch_id == 1)
            wait(lambda: "sink.down" in reports())
            waiting = reports()["sink.down"]
            assert waiting.state is StreamState.WAITING
            assert "SINK_UNREACHABLE" in str(waiting.error)
            down.addresses = lambda: addresses
            wait(lambda: reports()["sink.down"].batch_id == 1)
            assert reports()["sink.down"].state is StreamState.RUNNING
        finally:
            sinks.stop()
        assert {one.state for one in store.progress()} == {StreamState.STOPPED}
    assert verify_sink(up).passed
    assert verify_sink(down).passed


def test_a_refused_sink_stays_visible(table: Table, make: Make, tmp_path: Path) -> None:
    table.create(rows({1: "Ann"}))
    table.append(rows({1: "Anna"}))
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        sinks = SinkRunner({"twice": make(SinkSystem.REDIS)}, store, trigger_seconds=0.02)
        sinks.start()
        wait(lambda: bool(store.progress()))
        sinks.stop()
        [report] = store.progress()
    assert report.state is StreamState.REFUSED
    assert "SINK_KEYS_NOT_UNIQUE" in str(report.error)

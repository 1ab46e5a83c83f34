"""What counts as a clock that was set back, and what restarts then."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import httpx
import pytest

from spark_jobs.settings import load_settings
from spark_jobs.streaming import clock_watch
from spark_jobs.streaming.clock_watch import SET_BACK_SECONDS, ClockWatch, watching_clock


def test_only_a_step_back_of_the_clock_restarts() -> None:
    now, passed, found = [1000.0], [0.0], list[float]()
    watch = ClockWatch(found.append, clock=lambda: now[0], monotonic=lambda: passed[0])

    def after(seconds: float, *, step: float = 0.0) -> bool:
        passed[0] += seconds
        now[0] += seconds + step
        return watch.look()

    assert not after(2)
    assert not after(2)
    # A host that slept, a clock that is set forward, and a small correction.
    assert not after(3600)
    assert not after(2, step=6000)
    assert not after(2, step=1 - SET_BACK_SECONDS)
    assert found == []
    assert after(2, step=-6000)
    assert found == [6000]
    assert not after(2)


def test_the_connector_and_the_application_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url}")
        if request.url.host == "first":
            raise httpx.ConnectError("refused")
        return httpx.Response(202)

    def client(_: object, number: int) -> httpx.Client:
        host = ("first", "second")[number - 1]
        return httpx.Client(base_url=f"http://{host}", transport=httpx.MockTransport(answer))

    times = iter((6000.0,))
    monkeypatch.setattr(clock_watch, "client", client)
    monkeypatch.setattr(clock_watch, "LOOK_SECONDS", 0.02)
    settings = load_settings(tmp_path, local={"connect_workers": 2})
    stopping = threading.Event()
    with (
        caplog.at_level(logging.WARNING),
        watching_clock(settings, stopping, clock=lambda: next(times, 0.0)),
    ):
        assert stopping.wait(20)
    restart = "/connectors/shop/restart?includeTasks=true&onlyFailed=false"
    assert asked == [f"POST http://first{restart}", f"POST http://second{restart}"]
    assert "clock was set back" in caplog.text

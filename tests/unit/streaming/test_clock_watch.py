"""What counts as a clock that was set back, and what restarts then."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from spark_jobs.settings import load_settings
from spark_jobs.stack.supervisor import Supervisor
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


@pytest.mark.parametrize("answers", [True, False])
def test_the_workers_and_the_application_restart(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    *,
    answers: bool,
) -> None:
    killed: list[str] = []
    times = iter((6000.0,))
    monkeypatch.setattr(clock_watch, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(Supervisor, "answers", lambda _: answers)
    monkeypatch.setattr(Supervisor, "kill_part", lambda _, name: killed.append(name))
    settings = load_settings(tmp_path, local={"connect_workers": 2})
    stopping = threading.Event()
    with (
        caplog.at_level(logging.WARNING),
        watching_clock(settings, stopping, clock=lambda: next(times, 0.0)),
    ):
        assert stopping.wait(20)
    assert killed == (["connect", "connect-2"] if answers else [])
    assert "clock was set back" in caplog.text
    assert ("restart Kafka Connect" in caplog.text) is not answers

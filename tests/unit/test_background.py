"""The thread that calls a function periodically."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest

from spark_jobs.access.errors import AirflowAwayError
from spark_jobs.background import BackgroundLoop

TIMEOUT = 20.0


def loop(work: Callable[[], object], **options: float) -> BackgroundLoop:
    numbers = {"pause": 0.01, "longest_pause": 0.02, "stop_seconds": TIMEOUT, **options}
    return BackgroundLoop("worker", work, "work failed", **numbers)  # type: ignore[arg-type]


def test_the_function_is_called_until_the_block_ends() -> None:
    calls: list[str] = []
    enough = threading.Event()

    def work() -> None:
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            enough.set()

    with loop(work) as running:
        assert enough.wait(TIMEOUT)
    assert running.stopping.is_set()
    assert "worker" not in {one.name for one in threading.enumerate()}
    assert set(calls) == {"worker"}


def test_an_exception_is_logged_once_and_again_after_a_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = AirflowAwayError("http://127.0.0.1:1", "connection refused")
    outcomes = [away, away, ValueError("wrong"), None, away]
    enough = threading.Event()

    def work() -> None:
        if not outcomes:
            enough.set()
            return
        outcome = outcomes.pop(0)
        if outcome is not None:
            raise outcome

    with caplog.at_level(logging.WARNING), loop(work):
        assert enough.wait(TIMEOUT)
    refused = f"work failed error={away.primary}"
    assert caplog.messages == [refused, "work failed error=ValueError('wrong')", refused]


def test_the_pause_grows_to_its_bound_and_shrinks_after_a_success() -> None:
    at: list[float] = []
    enough = threading.Event()

    def work() -> None:
        at.append(time.monotonic())
        if len(at) == 7:
            enough.set()
        if len(at) < 6:
            raise ValueError

    with loop(work, pause=0.05, longest_pause=0.8):
        assert enough.wait(TIMEOUT)
    pauses = [later - earlier for earlier, later in pairwise(at)]
    for pause, least in zip(pauses, (0.1, 0.2, 0.4, 0.8, 0.8, 0.05), strict=True):
        assert pause >= least
    assert pauses[4] < 1.6
    assert pauses[5] < 0.8


def test_long_work_sees_that_the_block_ends() -> None:
    stopping = threading.Event()
    began = threading.Event()

    def work() -> None:
        began.set()
        assert stopping.wait(TIMEOUT)

    with BackgroundLoop("worker", work, "work failed", 0.01, 0.02, TIMEOUT, stopping=stopping):
        assert began.wait(TIMEOUT)
        started = time.monotonic()
    assert time.monotonic() - started < TIMEOUT / 2

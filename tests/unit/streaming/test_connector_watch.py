"""A failed connector is restarted, less often the more often it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest

from spark_jobs.settings import load_settings
from spark_jobs.streaming import connector_watch
from spark_jobs.streaming.connector_watch import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    RECOVERED_SECONDS,
    SLOT_SECONDS,
    UNREAD_SECONDS,
    ConnectorWatch,
    watching_connector,
)


@dataclass
class Worker:
    """Answers as a worker of Kafka Connect does, unless it is ``away``."""

    task: str = "RUNNING"
    now: float = 0.0
    away: bool = False
    broken: bool = False
    # Whether nobody reads the slot; None if the database does not answer.
    unread: bool | None = False
    opened: int = 0
    requests: list[str] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request.method)
        if self.away:
            raise httpx.ConnectError("connection refused", request=request)
        if self.broken:
            return httpx.Response(500)
        if request.method == "POST":
            only_failed = str(self.task == "FAILED").lower()
            assert dict(request.url.params) == {"includeTasks": "true", "onlyFailed": only_failed}
            self.restarts.append(self.now)
            return httpx.Response(202)
        if not self.task:
            return httpx.Response(404)
        tasks = [{"state": self.task, "trace": "no TypeRegistry\n at ..."}]
        return httpx.Response(200, json={"connector": {"state": "RUNNING"}, "tasks": tasks})

    def api(self) -> httpx.Client:
        self.opened += 1
        transport = httpx.MockTransport(self.answer)
        return httpx.Client(transport=transport, base_url="http://worker")

    def watch(self) -> ConnectorWatch:
        return ConnectorWatch([self.api], self.nobody_reads, clock=lambda: self.now)

    def nobody_reads(self) -> bool:
        if self.unread is None:
            raise psycopg.OperationalError("connection refused")
        return self.unread

    def run(self, watch: ConnectorWatch, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            watch.look()
            self.now += 1


def test_pauses_double_until_the_connector_has_run_for_a_while() -> None:
    worker = Worker()
    watch = worker.watch()
    worker.run(watch, 5)
    assert worker.restarts == []
    worker.task, began = "FAILED", worker.now
    worker.run(watch, 3600)
    pauses = [b - a for a, b in zip([began, *worker.restarts], worker.restarts, strict=False)]
    assert pauses[:3] == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS + 1, 41]
    assert pauses[-1] == LONGEST_PAUSE_SECONDS + 1
    worker.task = "RUNNING"
    worker.run(watch, RECOVERED_SECONDS + 5)
    worker.task, began, worker.restarts = "FAILED", worker.now, []
    worker.run(watch, FIRST_PAUSE_SECONDS + 1)
    assert worker.restarts == [began + FIRST_PAUSE_SECONDS]


def test_a_connector_that_runs_and_does_not_read_its_slot_is_restarted() -> None:
    worker = Worker()
    watch = worker.watch()
    worker.run(watch, RECOVERED_SECONDS)
    worker.unread, began = True, worker.now
    worker.run(watch, 1000)
    assert UNREAD_SECONDS <= worker.restarts[0] - began <= UNREAD_SECONDS + SLOT_SECONDS
    pauses = [b - a for a, b in zip(worker.restarts, worker.restarts[1:], strict=False)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > 2 * UNREAD_SECONDS
    worker.unread, worker.restarts = False, []
    worker.run(watch, 3 * RECOVERED_SECONDS)
    assert worker.restarts == []


@pytest.mark.parametrize("answers", [(True, False), (True, None)])
def test_a_slot_that_is_unread_for_a_moment_restarts_nothing(
    answers: tuple[bool, bool | None],
) -> None:
    worker = Worker()
    watch = worker.watch()
    for answer in answers * 3:
        worker.unread = answer
        worker.run(watch, UNREAD_SECONDS - SLOT_SECONDS)
    assert worker.restarts == []


def test_a_connector_that_starts_is_not_restarted() -> None:
    worker = Worker(task="UNASSIGNED", unread=True)
    worker.run(worker.watch(), 5 * UNREAD_SECONDS)
    assert worker.restarts == []


def test_a_connector_that_does_not_exist_is_not_restarted() -> None:
    worker = Worker(task="")
    worker.run(worker.watch(), 60)
    assert worker.restarts == []


def test_a_watch_keeps_its_client_and_asks_for_the_status_once() -> None:
    worker = Worker(task="FAILED")
    watch = worker.watch()
    worker.run(watch, FIRST_PAUSE_SECONDS + 1)
    assert worker.opened == 1
    assert worker.requests == ["GET"] * 11 + ["POST"]


def test_a_client_is_opened_again_after_a_worker_did_not_answer() -> None:
    worker = Worker(away=True)
    watch = worker.watch()
    for _ in range(2):
        with pytest.raises(httpx.ConnectError):
            watch.look()
    worker.away = False
    assert watch.look() is False
    assert worker.opened == 3


def test_the_next_worker_restarts_the_connector_when_one_does_not_answer() -> None:
    first, second = Worker(task="FAILED"), Worker(task="FAILED")
    now = 0.0
    watch = ConnectorWatch([first.api, second.api], first.nobody_reads, clock=lambda: now)
    watch.look()
    assert second.opened == 0
    first.away, now = True, FIRST_PAUSE_SECONDS
    assert watch.look() is True
    assert (first.restarts, len(second.restarts)) == ([], 1)
    # The worker that answered is asked from now on, until it fails.
    asked = len(first.requests)
    watch.look()
    assert len(first.requests) == asked
    first.away, second.away = False, True
    watch.look()
    assert len(first.requests) > asked
    first.away = True
    with pytest.raises(httpx.ConnectError):
        watch.look()


def test_a_restart_that_connect_refuses_is_requested_again() -> None:
    worker = Worker(task="FAILED")
    refused = httpx.Response(409, json={"message": "rebalance in progress"})
    answers = [refused]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and answers:
            found = answers.pop()
            found.request = request
            return found
        return worker.answer(request)

    def api() -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(answer), base_url="http://worker")

    watch = ConnectorWatch([api], worker.nobody_reads, clock=lambda: worker.now)
    worker.run(watch, FIRST_PAUSE_SECONDS)
    with pytest.raises(httpx.HTTPStatusError):
        watch.look()
    worker.now += 1
    assert watch.look() is True
    assert worker.restarts == [FIRST_PAUSE_SECONDS + 1]


def test_a_worker_that_cannot_tell_is_not_a_running_connector() -> None:
    """The next worker is asked, so the failure is seen."""
    broken, sound = Worker(broken=True), Worker(task="FAILED")
    watch = ConnectorWatch([broken.api, sound.api], sound.nobody_reads, clock=lambda: sound.now)
    sound.run(watch, FIRST_PAUSE_SECONDS + 2)
    assert len(sound.restarts) == 1
    alone = Worker(broken=True)
    with pytest.raises(httpx.HTTPStatusError):
        alone.watch().look()


class Turns:
    """Stands for the background loop; the test takes its turns."""

    def __init__(self, name: str, look: Callable[[], bool], *_: object, **__: object) -> None:
        self.look = look

    def __enter__(self) -> None:
        TURNS.append(self.look)

    def __exit__(self, *_: object) -> None:
        TURNS.remove(self.look)


TURNS: list[Callable[[], bool]] = []


@pytest.mark.parametrize("ours", [True, False])
def test_a_connector_at_an_address_is_restarted_where_the_workers_are_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: bool
) -> None:
    """In our pods, without a password for the source database; elsewhere by its operator."""
    worker = Worker()
    monkeypatch.setattr(connector_watch, "client", lambda _: worker.api())
    monkeypatch.setattr(connector_watch, "BackgroundLoop", Turns)
    watch = partial(ConnectorWatch, clock=lambda: worker.now)
    monkeypatch.setattr(connector_watch, "ConnectorWatch", watch)
    connect = {"url": "http://connect:8083", "restart_failed": ours}
    settings = load_settings(tmp_path, kafka_connect=connect)
    with watching_connector(settings):
        assert len(TURNS) == ours
        for look in TURNS:
            for _ in range(200):
                assert look() is False
                worker.now += 1
            worker.task = "FAILED"
            look()
            worker.now += FIRST_PAUSE_SECONDS
            assert look() is True
    assert (len(worker.restarts), TURNS) == (ours, [])

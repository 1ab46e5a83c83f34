"""A failed connector is restarted, less often the more often it fails."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx

from spark_jobs.streaming.connector_watch import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    RECOVERED_SECONDS,
    ConnectorWatch,
)


@dataclass
class Worker:
    """Answers as a worker of Kafka Connect does."""

    task: str = "RUNNING"
    now: float = 0.0
    restarts: list[float] = field(default_factory=list)

    def answer(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            assert dict(request.url.params) == {"includeTasks": "true", "onlyFailed": "true"}
            self.restarts.append(self.now)
            return httpx.Response(202)
        if not self.task:
            return httpx.Response(404)
        tasks = [{"state": self.task, "trace": "no TypeRegistry\n at ..."}]
        return httpx.Response(200, json={"connector": {"state": "RUNNING"}, "tasks": tasks})

    def watch(self) -> ConnectorWatch:
        def api() -> httpx.Client:
            transport = httpx.MockTransport(self.answer)
            return httpx.Client(transport=transport, base_url="http://worker")

        return ConnectorWatch(api, clock=lambda: self.now)

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


def test_a_connector_that_is_not_there_is_left_alone() -> None:
    worker = Worker(task="")
    worker.run(worker.watch(), 60)
    assert worker.restarts == []

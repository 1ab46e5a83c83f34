"""A new snapshot while a part is away ends with one sentence, and can be requested again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spark_jobs.settings import LOOPBACK, load_settings
from spark_jobs.stack import resnapshot as resnapshot_module
from spark_jobs.stack.connect import wait_until_running
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.resnapshot import resnapshot

RUNNING = {"connector": {"state": "RUNNING"}, "tasks": [{"state": "RUNNING"}]}
STOPPED = {"connector": {"state": "STOPPED"}, "tasks": []}


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that is taken, and on which nothing listens."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        yield taken.getsockname()[1]


def test_a_worker_that_is_away(tmp_path: Path, closed_port: int) -> None:
    address = f"http://{LOOPBACK}:{closed_port}"
    settings = load_settings(tmp_path, kafka_connect={"url": address})
    with pytest.raises(ConnectorFailedError, match="Kafka Connect does not answer"):
        resnapshot(settings, dsn="")


def test_a_database_that_is_away(
    tmp_path: Path, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(f"{request.method} {request.url.path}")
        return httpx.Response(200, json=STOPPED)

    api = httpx.Client(base_url="http://connect", transport=httpx.MockTransport(answer))
    monkeypatch.setattr(resnapshot_module, "client", lambda _: api)
    dsn = f"postgresql://u@{LOOPBACK}:{closed_port}/shop"
    with pytest.raises(ConnectorFailedError, match="its database does not answer"):
        resnapshot(load_settings(tmp_path), dsn=dsn)
    assert "PUT /connectors/shop/resume" not in asked


def test_a_worker_that_restarts_is_waited_for() -> None:
    answers = iter([httpx.ConnectError("refused"), httpx.Response(200, json=RUNNING)])

    def answer(request: httpx.Request) -> httpx.Response:
        del request
        match next(answers):
            case httpx.Response() as found:
                return found
            case error:
                raise error

    transport = httpx.MockTransport(answer)
    with httpx.Client(base_url="http://connect", transport=transport) as api:
        wait_until_running(api)
    assert next(answers, None) is None

"""A new snapshot while a part is away ends with one sentence, and can be requested again."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import httpx
import psycopg
import pytest

from spark_jobs.settings import LOOPBACK, load_settings
from spark_jobs.stack import resnapshot as resnapshot_module
from spark_jobs.stack.connect import wait_until_running
from spark_jobs.stack.errors import ConnectorFailedError, SlotRightsError
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


class ReadingOnly:
    """A connection of a role that may not drop slots."""

    info = SimpleNamespace(user="reader")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def execute(self, *_: object) -> None:
        raise psycopg.errors.InsufficientPrivilege("permission denied to use replication slots")


def test_a_role_that_may_not_drop_the_slot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before the connector is stopped and its offsets are deleted."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.method)
        return httpx.Response(200, json=STOPPED)

    api = httpx.Client(base_url="http://connect", transport=httpx.MockTransport(answer))
    monkeypatch.setattr(resnapshot_module, "client", lambda _: api)
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: ReadingOnly())
    with pytest.raises(SlotRightsError, match="reader") as refused:
        resnapshot(load_settings(tmp_path), dsn="")
    assert "ALTER ROLE reader REPLICATION" in refused.value.hint
    assert asked == ["GET"]

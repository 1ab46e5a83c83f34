"""A connector without tables is deleted with its position and its slot."""

from __future__ import annotations

from pathlib import Path

import httpx
import psycopg
import pytest

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import disconnect as module
from spark_jobs.stack.disconnect import disconnect
from spark_jobs.stack.errors import ConnectorFailedError

STOPPED = {"connector": {"state": "STOPPED"}, "tasks": []}
WHOLE = [
    "PUT /connectors/shop/stop",
    "DELETE /connectors/shop/offsets",
    "slot tidemark",
    "DELETE /connectors/shop",
]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(module, "connector_dsn", lambda _: "postgresql://d@db/shop")
    return load_settings(tmp_path)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done, in order."""
    told: list[str] = []

    def drop(_: str, slot: str) -> bool:
        told.append(f"slot {slot}")
        return True

    monkeypatch.setattr(module, "drop_slot", drop)
    return told


def connect(
    monkeypatch: pytest.MonkeyPatch, done: list[str], *, known: bool = True, refuses: str = ""
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=STOPPED) if known else httpx.Response(404)
        done.append(f"{request.method} {request.url.path}")
        return httpx.Response(409 if done[-1] == refuses else 200, text="A rebalance runs.")

    def client(_: Settings) -> httpx.Client:
        return httpx.Client(base_url="http://connect", transport=httpx.MockTransport(answer))

    monkeypatch.setattr(module, "client", client)


def test_position_slot_and_connector_go(
    settings: Settings, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, done)
    assert "is dropped" in disconnect(settings)
    assert done == WHOLE


def test_what_was_interrupted_is_repeated(
    settings: Settings, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, done, refuses=WHOLE[-1])
    with pytest.raises(ConnectorFailedError, match="A rebalance runs"):
        disconnect(settings)
    connect(monkeypatch, done, known=False)
    disconnect(settings)
    assert done == [*WHOLE, "slot tidemark"]


def test_a_database_that_is_gone_prevents_nothing(
    settings: Settings, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the reason why its source was removed."""
    connect(monkeypatch, done)

    def gone(*_: object) -> bool:
        raise psycopg.OperationalError("connection refused\n  Is it running?")

    monkeypatch.setattr(module, "drop_slot", gone)
    told = disconnect(settings)
    assert "connection refused" in told
    assert "SELECT pg_drop_replication_slot('tidemark')" in told
    assert done == [one for one in WHOLE if not one.startswith("slot")]


def test_workers_that_do_not_answer_are_an_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    def client(_: Settings) -> httpx.Client:
        return httpx.Client(base_url="http://connect", transport=httpx.MockTransport(away))

    monkeypatch.setattr(module, "client", client)
    with pytest.raises(ConnectorFailedError, match="Kafka Connect does not answer"):
        disconnect(settings)

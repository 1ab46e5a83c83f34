"""Registering the connector with workers that take their time, and with one that never answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack import connect
from spark_jobs.stack.connect import connect_parts, probe_worker, register
from spark_jobs.stack.connector import captured_tables, connector_config
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.skipped import capture_problem
from tests.shipped import shipped_project

RUNNING = {"connector": {"state": "RUNNING"}, "tasks": [{"state": "RUNNING"}]}


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return shipped_project()


@contextmanager
def workers(
    manifest: Manifest, tmp_path, *, seconds: float = 0, halted: str = ""
) -> Iterator[Settings]:
    """The settings of workers that answer, each time, so late.

    With ``halted``, their connector is in this state until it is resumed.
    """
    state = {"connector": {"state": halted}, "tasks": []} if halted else dict(RUNNING)

    class Late(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(seconds)
            answer = state if self.path.endswith("/status") else known
            answer = ["shop"] if self.path == "/connectors" else answer
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def do_PUT(self) -> None:
            assert self.path == "/connectors/shop/resume"
            state.update(RUNNING)
            self.send_response(202)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Late) as server:
        server.daemon_threads = True
        address = f"http://127.0.0.1:{server.server_address[1]}"
        settings = load_settings(
            tmp_path,
            kafka_connect={"url": address},
            source_database="postgresql://d:p@127.0.0.1:1/shop",
        )
        known = {**connector_config(settings, captured_tables(manifest)), "name": "shop"}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield settings
        finally:
            server.shutdown()


def test_workers_that_form_their_group_first_are_waited_for(
    manifest: Manifest, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "LOOK_SECONDS", 0.1)
    with workers(manifest, tmp_path, seconds=0.3) as settings:
        register(settings, manifest)


def test_workers_that_never_answer_are_an_error(
    manifest: Manifest, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "ANSWER_SECONDS", 0.1)
    with (
        workers(manifest, tmp_path, seconds=1) as settings,
        pytest.raises(ConnectorFailedError, match="Kafka Connect does not answer"),
    ):
        register(settings, manifest)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('{"error_code": 400, "message": "Invalid slot"}', "is refused: Invalid slot"),
        ("<html>\n<h1>No upstream</h1>", "is refused: 502 Bad Gateway, <html>."),
        ("", "is refused: 502 Bad Gateway"),
        ("[]", "is refused: 502 Bad Gateway"),
    ],
)
def test_what_refuses_the_connector_may_be_a_proxy(
    manifest: Manifest, tmp_path, monkeypatch: pytest.MonkeyPatch, said: str, shown: str
) -> None:
    """An external Kafka Connect is often behind one, whose errors are not JSON."""
    transport = httpx.MockTransport(lambda _: httpx.Response(502, text=said))
    monkeypatch.setattr(
        connect, "client", lambda _: httpx.Client(base_url="http://connect", transport=transport)
    )
    with pytest.raises(ConnectorFailedError) as refused:
        register(load_settings(tmp_path), manifest)
    assert shown in str(refused.value)


@pytest.mark.parametrize("state", ["STOPPED", "PAUSED"])
def test_a_connector_that_was_stopped_is_named_and_then_resumed(
    manifest: Manifest, tmp_path, state: str
) -> None:
    with workers(manifest, tmp_path, halted=state) as settings:
        named = capture_problem(settings)
        assert named is not None
        assert named.startswith("is stopped: ")
        # `make up` does nothing in a stack whose parts are all ready.
        assert probe_worker(settings, 1) == "connector 'shop' is stopped"
        # The step that resumes it waits for the worker alone.
        assert probe_worker(settings, 1, connector=False) is None
        register(settings, manifest)
        assert capture_problem(settings) is None
        assert probe_worker(settings, 1) is None


def test_a_worker_serves_whose_connector_failed(manifest: Manifest, tmp_path) -> None:
    with workers(manifest, tmp_path, halted="FAILED") as settings:
        assert probe_worker(settings, 1) == "connector 'shop' failed: no reason given"
        (worker,) = connect_parts(settings)
        assert worker.serves is not None
        assert worker.serves() is None

"""The client of Airflow's events, against a server that speaks as Airflow's does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest

from spark_jobs.access.airflow import AssetEvents
from spark_jobs.access.errors import AirflowAwayError

ASSETS = [{"id": 3, "name": "gold.orders_old"}, {"id": 4, "name": "gold.orders"}]


class Server(ThreadingHTTPServer):
    tokens = 0
    events: list[dict[str, object]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if not self._let_in():
            return
        if asked.path == "/api/v2/assets":
            name = parse_qs(asked.query)["name_pattern"][0]
            self._answer({"assets": [one for one in ASSETS if name in str(one["name"])]})
        else:
            self._answer({"asset_events": self.server.events})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/auth/token":
            if body["password"] != "right":
                self._answer({}, status=401)
                return
            self.server.tokens += 1
            self._answer({"access_token": f"token {self.server.tokens}"}, status=201)
        elif self._let_in():
            self.server.events.append(body)
            self._answer({})

    def _let_in(self) -> bool:
        """Only the newest token serves, as if older ones had expired."""
        right = self.headers.get("Authorization") == f"Bearer token {self.server.tokens}"
        if not right:
            self._answer({}, status=401)
        return right

    def _answer(self, body: dict[str, object], *, status: int = 200) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as served:
        served.events = []
        thread = Thread(target=served.serve_forever)
        thread.start()
        yield served
        served.shutdown()
        thread.join()


def client(server: Server, password: str = "right") -> AssetEvents:  # noqa: S107
    return AssetEvents(
        f"http://127.0.0.1:{server.server_port}/", user="announcer", password=password
    )


def test_an_asset_is_found_by_its_whole_name(server: Server) -> None:
    with client(server) as airflow:
        assert airflow.asset("gold.orders") == 4
        assert airflow.asset("gold.order") is None


def test_an_event_carries_its_attempt_and_is_found_by_it(server: Server) -> None:
    with client(server) as airflow:
        airflow.emit(4, {"attempt": "a1", "version": 2})
        assert server.events == [{"asset_id": 4, "extra": {"attempt": "a1", "version": 2}}]
        assert airflow.attempts(4) == {"a1"}


def test_a_token_that_expired_is_renewed(server: Server) -> None:
    with client(server) as airflow:
        airflow.asset("gold.orders")
        server.tokens += 1
        assert airflow.asset("gold.orders") == 4


def test_a_wrong_password_and_no_server_are_one_sentence(server: Server) -> None:
    with client(server, "wrong") as airflow, pytest.raises(AirflowAwayError, match="401"):
        airflow.asset("gold.orders")
    with (
        AssetEvents("http://127.0.0.1:1", user="announcer", password="right") as airflow,
        pytest.raises(AirflowAwayError, match="accepts no events"),
    ):
        airflow.asset("gold.orders")

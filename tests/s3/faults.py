"""A proxy between clients and an object store that injects network faults by a seed."""

from __future__ import annotations

import http.client
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Fault(Enum):
    """The fate of a request."""

    NONE = auto()
    # It never arrives: it is refused, or the connection is closed before.
    REFUSED = auto()
    CUT_OFF = auto()
    # It is executed, but the response is lost.
    ANSWER_LOST = auto()


Choice = Callable[[str, str, bool], Fault]
HARMFUL = (Fault.REFUSED, Fault.CUT_OFF, Fault.ANSWER_LOST)


def half_fail(seed: int) -> Choice:
    """On average every second request fails."""
    chance, lock = random.Random(seed), threading.Lock()

    def choose(method: str, path: str, conditional: bool) -> Fault:
        with lock:
            return chance.choice(HARMFUL) if chance.random() < 0.5 else Fault.NONE

    return choose


@contextmanager
def proxy(server: int, choose: Choice) -> Iterator[tuple[int, Counter[Fault]]]:
    """A proxy for the server at a port; yields its own port, and counts by fault."""
    done: Counter[Fault] = Counter()
    front = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(_Handler, server=server, choose=choose, done=done)
    )
    front.daemon_threads = True
    thread = threading.Thread(target=front.serve_forever, daemon=True)
    thread.start()
    try:
        yield front.server_address[1], done
    finally:
        front.shutdown()
        front.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *arguments: Any, server: int, choose: Choice, done: Counter[Fault]) -> None:
        self.behind, self.choose, self.done = server, choose, done
        super().__init__(*arguments)

    def __getattr__(self, name: str) -> Callable[[], None]:
        # Every HTTP method is forwarded in the same way.
        if name.startswith("do_"):
            return self.pass_on
        raise AttributeError(name)

    def forwarded(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        back = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=60)
        back.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            # Otherwise it would answer before the body is read.
            if name.lower() != "expect":
                back.putheader(name, value)
        back.endheaders(body)
        answer = back.getresponse()
        content = answer.read()
        back.close()
        return answer, content

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.choose(self.command, self.path, self.headers.get("If-None-Match") == "*")
        self.done[fault] += 1
        if fault is Fault.CUT_OFF:
            self.close_connection = True
            return
        if fault is Fault.REFUSED:
            self.close_connection = True
            self.send_response_only(503)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            return
        answer, content = self.forwarded(body)
        if fault is Fault.ANSWER_LOST:
            self.close_connection = True
            return
        self.answer(answer, content)

    def answer(self, answer: http.client.HTTPResponse, content: bytes) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                self.send_header(name, value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass

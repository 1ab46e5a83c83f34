"""Who may call functions of a driver: by the account at the other end of the connection."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from spark_jobs.storage.callbacks import Callers, peer

HERE, NOBODY = frozenset({os.geteuid()}), 65534
CALL = """import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as call:
    call.sendall(b"hello")
    print(call.recv(5))
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_a_call_of_this_account_passes(server: socket.socket, host: str) -> None:
    with socket.create_connection((host, server.getsockname()[1])) as call:
        accepted, _ = server.accept()
        with accepted:
            assert Callers(HERE).wrap_socket(accepted, server_side=True) is accepted
            call.sendall(b"hello")
            assert accepted.recv(5) == b"hello"


def test_a_closed_connection_has_no_peer(server: socket.socket) -> None:
    with socket.create_connection(server.getsockname()) as call:
        call.sendall(b"hello")
        call.shutdown(socket.SHUT_WR)
        accepted, _ = server.accept()
        with accepted:
            assert peer(accepted) is None
            with Callers(HERE).wrap_socket(accepted, server_side=True) as ended:
                assert ended.recv(5) == b""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("let_in", [False, True])
def test_of_another_account_only_those_that_are_named_pass(
    server: socket.socket, *, let_in: bool
) -> None:
    python = "/usr/bin/python3"
    port = str(server.getsockname()[1])
    account = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    with subprocess.Popen(
        [python, "-I", "-c", CALL, port], stdout=subprocess.PIPE, cwd="/", **account
    ) as other:
        accepted, _ = server.accept()
        callers = Callers(HERE | {NOBODY} if let_in else HERE)
        with callers.wrap_socket(accepted, server_side=True) as call:
            assert call.recv(5) == (b"hello" if let_in else b"")
            if let_in:
                call.sendall(b"world")
        said, _ = other.communicate(timeout=30)
    assert said == (b"b'world'\n" if let_in else b"b''\n") or (not let_in and said == b"")

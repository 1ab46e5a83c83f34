from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.access.secrets import read_secret
from spark_jobs.local.catalog import all_steps, check_part_names
from spark_jobs.local.endpoint import (
    NAME,
    SECRET,
    USER,
    may_enter,
    prepare_endpoint,
    probe_endpoint,
)
from spark_jobs.local.secrets import write_secret
from spark_jobs.sections import Ports
from spark_jobs.settings import Settings, load_settings

COMPLETE, BAD = b"\x05", b"\x03"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port = int(chosen.getsockname()[1])
    return load_settings(tmp_path, state_dir=tmp_path / "state", ports=Ports(endpoint=port))


@pytest.fixture
def server(settings: Settings) -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", settings.ports.endpoint)) as listening:
        yield listening


def answered(server: socket.socket, answer: bytes) -> list[bytes]:
    """Answer one client; what it said is there once it has been answered."""
    said: list[bytes] = []

    def serve() -> None:
        client, _ = server.accept()
        with client:
            said.append(client.recv(1000))
            client.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return said


def test_it_starts_only_when_somebody_names_it(settings: Settings) -> None:
    steps = all_steps(settings)
    assert NAME not in check_part_names(steps, [])
    assert check_part_names(steps, [NAME]) == (NAME,)


def test_user_and_password_are_both_asked_for(settings: Settings) -> None:
    assert not may_enter(settings, USER, "")
    prepare_endpoint(settings)
    password = read_secret(settings, SECRET)
    assert may_enter(settings, USER, password)
    assert not may_enter(settings, "admin", password)
    assert not may_enter(settings, USER, password[:-1])
    assert not may_enter(settings, USER, "é")
    write_secret(settings, SECRET, "another")
    assert may_enter(settings, USER, "another")
    prepare_endpoint(settings)
    assert read_secret(settings, SECRET) == "another"


def test_it_serves_once_it_lets_its_user_in(settings: Settings, server: socket.socket) -> None:
    assert "does not exist" in (probe_endpoint(settings) or "")
    prepare_endpoint(settings)
    said = answered(server, COMPLETE)
    assert probe_endpoint(settings) is None
    assert said[0].startswith(b"\x01\x00\x00\x00\x05PLAIN\x02")
    assert said[0].endswith(f"\0{USER}\0{read_secret(settings, SECRET)}".encode())
    answered(server, BAD)
    assert probe_endpoint(settings) == "does not let its user in"


def test_nobody_listens_yet(settings: Settings) -> None:
    prepare_endpoint(settings)
    assert probe_endpoint(settings) == "does not listen yet"

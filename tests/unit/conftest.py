"""Servers that live as long as the test run; `make setup` installs the packages."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.servers import running_postgres


@pytest.fixture(scope="session")
def postgres_socket() -> Iterator[Path]:
    """The socket directory of a cluster that lives as long as the test run."""
    with running_postgres(loopback=False) as server:
        yield server.home


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The address of a server that keeps everything in memory."""
    if shutil.which("redis-server") is None:
        pytest.fail("Redis's server is not installed: make setup")
    with tempfile.TemporaryDirectory(prefix="tidemark-redis-", dir="/tmp") as name:
        socket = f"{name}/socket"
        options = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", name]
        with subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL) as server:
            try:
                deadline = time.monotonic() + 20
                while not Path(socket).exists():
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                with redis.Redis.from_url(f"unix://{socket}") as client:
                    assert client.ping()
                yield f"unix://{socket}"
            finally:
                server.terminate()

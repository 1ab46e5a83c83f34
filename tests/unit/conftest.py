"""Servers that live as long as the test run; `make setup` installs the packages."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis


def postgres_programs() -> Path | None:
    """Where the distribution keeps the newest PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@pytest.fixture(scope="session")
def postgres_socket() -> Iterator[Path]:
    """The socket directory of a cluster that lives as long as the test run."""
    programs = postgres_programs()
    if programs is None:
        pytest.fail("PostgreSQL's server is not installed: make setup")
    # PostgreSQL refuses to run as root, and its user must reach the directory.
    account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="tidemark-pg-", dir="/tmp") as name:
        home = Path(name)
        home.chmod(0o700)
        if account:
            os.chown(home, account.pw_uid, account.pw_gid)

        def run(*command: str) -> None:
            subprocess.run(
                [str(programs / command[0]), *command[1:]],
                check=True,
                capture_output=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                cwd=home,
            )

        data = str(home / "data")
        run("initdb", "-D", data, "-U", "tidemark", "-A", "trust", "--no-sync", "-E", "UTF8")
        options = f"-c listen_addresses= -c unix_socket_directories={home} -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-o", options, "-l", str(home / "log"), "start")
        try:
            yield home
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


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

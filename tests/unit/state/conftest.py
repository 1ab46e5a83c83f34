"""Control stores on both databases; PostgreSQL is a throwaway cluster where it is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from spark_jobs.state.store import ControlStore


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
        pytest.skip("PostgreSQL's server is not installed")
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


@pytest.fixture(params=["sqlite", "postgresql"])
def control_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty control database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'state' / 'control.db'}"
    socket: Path = request.getfixturevalue("postgres_socket")
    database = f"t{os.urandom(6).hex()}"
    with psycopg.connect(
        host=str(socket), user="tidemark", dbname="postgres", autocommit=True
    ) as admin:
        admin.execute(f"CREATE DATABASE {database}".encode())
    return f"postgresql+psycopg://tidemark@/{database}?host={socket}"


@pytest.fixture
def store(control_url: str) -> Iterator[ControlStore]:
    with ControlStore.open(control_url) as opened:
        yield opened

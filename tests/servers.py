"""Servers of the distribution's packages, each with its files in a separate directory."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

LOOPBACK = "127.0.0.1"
POSTGRES_PORT = 5432


@dataclass(frozen=True)
class Postgres:
    """A cluster without authentication, with logical decoding.

    Attributes:
        home: directory of the socket.
        port: on loopback.
    """

    home: Path
    port: int

    @property
    def dsn(self) -> str:
        """The URL of its superuser's database, over loopback."""
        return f"host={LOOPBACK} port={self.port} user=tidemark dbname=postgres"

    def fill(self, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
        """Recreate a table with some rows; ``columns`` are those of its CREATE TABLE."""
        with psycopg.connect(self.dsn) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
            connection.execute(f"CREATE TABLE {table} ({columns})".encode())
            for row in rows:
                query = sql.SQL("INSERT INTO {} VALUES ({})").format(
                    sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Literal, row))
                )
                connection.execute(query)


def postgres_programs() -> Path | None:
    """The directory of the newest PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@contextmanager
def running_postgres(*, loopback: bool) -> Iterator[Postgres]:
    """A new cluster; fails the test if the server is not installed.

    Args:
        loopback: whether it listens there, on a free port, and not on its socket alone.
    """
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

        with socket.socket() as free:
            free.bind((LOOPBACK, 0))
            port: int = free.getsockname()[1] if loopback else POSTGRES_PORT
        data = str(home / "data")
        encoding = ("-E", "UTF8", "--locale", "C.UTF-8")
        run("initdb", "-D", data, "-U", "tidemark", "-A", "trust", "--no-sync", *encoding)
        options = {
            "listen_addresses": LOOPBACK if loopback else "",
            "port": port,
            "unix_socket_directories": home,
            "wal_level": "logical",
            "fsync": "off",
        }
        text = " ".join(f"-c {key}={value}" for key, value in options.items())
        run("pg_ctl", "-D", data, "-w", "-o", text, "-l", str(home / "log"), "start")
        try:
            yield Postgres(home, port)
        finally:
            run("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")


@contextmanager
def outgrown_slots(database: psycopg.Connection) -> Iterator[None]:
    """The server has removed log that idle replication slots still need.

    Args:
        database: a superuser's connection in autocommit mode.
    """
    database.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    database.execute("SELECT pg_reload_conf()")
    try:
        for _ in range(3):
            database.execute("SELECT pg_logical_emit_message(true, 'noise', 'x')")
            database.execute("SELECT pg_switch_wal()")
        database.execute("CHECKPOINT")
        yield
    finally:
        database.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        database.execute("SELECT pg_reload_conf()")

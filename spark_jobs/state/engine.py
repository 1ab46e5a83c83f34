"""Connections to the control database, set up for many concurrent processes."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError

from spark_jobs.access import timeouts
from spark_jobs.state.errors import ControlUnreachableError

BUSY_SECONDS: Final = 30
RETRY_SECONDS: Final = 0.05
WRITES: Final = "tidemark_writes"
# Pooled connections to a SQLite file. When the last one closes, SQLite checkpoints the log and
# waits for the disk, which takes longer than the queries.
_IDLE = 2


def make_engine(url: str) -> Engine:
    """An engine for SQLite (``sqlite:////path``) or PostgreSQL (``postgresql+psycopg://``).

    Raises:
        ControlUnreachableError: the URL is invalid, or names an unsupported database.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ControlUnreachableError(url, str(error)) from error
    backend = parsed.get_backend_name()
    shown = parsed.render_as_string(hide_password=True)
    if backend == "sqlite" and parsed.database:
        try:
            make_private(Path(parsed.database))
        except OSError as error:
            raise ControlUnreachableError(shown, str(error)) from error
        engine = create_engine(
            parsed,
            poolclass=QueuePool,
            pool_size=_IDLE,
            max_overflow=-1,
            connect_args={"timeout": BUSY_SECONDS},
        )
        event.listen(engine, "connect", prepare_sqlite)
        event.listen(engine, "begin", begin_sqlite)
        opened, taken = _of_this_file(Path(parsed.database))
        event.listen(engine, "connect", opened)
        event.listen(engine, "checkout", taken)
        return engine
    if backend == "postgresql":
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        return create_engine(parsed, pool_pre_ping=True, connect_args=timeouts.POSTGRES)
    raise ControlUnreachableError(shown, "Only SQLite files and PostgreSQL are served")


def make_private(database: Path) -> None:
    """Create a SQLite file and its directory, readable by the owner only; existing ones stay.

    SQLite creates the files of its log with the same permissions.
    """
    if not database.parent.exists():
        database.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    if not database.exists():
        database.touch(mode=0o600)


def prepare_sqlite(connection: Any, record: Any) -> None:
    """Set up a new SQLite connection; the driver must not begin transactions itself."""
    del record
    if not isinstance(connection, sqlite3.Connection):
        return
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}").close()
    _use_log(connection)
    for pragma in ("foreign_keys = ON", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _use_log(connection: sqlite3.Connection) -> None:
    """Write changes to a log first, so that readers and a writer do not wait for each other.

    A new database is changed to this once. If several processes open it then, SQLite does not wait,
    and all but one fail at once.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


def _of_this_file(database: Path) -> tuple[Callable[..., None], Callable[..., None]]:
    """Pool hooks that replace connections of a parent process, or to a replaced file.

    A forked child must not share a connection with its parent, and a database restored from a copy
    is another file with the same name. See "Using Connection Pools with Multiprocessing or
    os.fork()" in SQLAlchemy's documentation.
    """

    def here() -> tuple[int, int, int]:
        found = (0, 0)
        with suppress(FileNotFoundError):
            about = database.stat()
            found = (about.st_dev, about.st_ino)
        return (os.getpid(), *found)

    def opened(connection: Any, record: Any) -> None:
        del connection
        record.info["of"] = here()

    def taken(connection: Any, record: Any, proxy: Any) -> None:
        del connection, proxy
        if record.info["of"] != here():
            raise DisconnectionError

    return opened, taken


def begin_sqlite(connection: Connection) -> None:
    """Take the write lock at once if the transaction will write.

    SQLite does not let a transaction that has read wait for another writer: it fails.
    """
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

"""Control stores on both databases; PostgreSQL is a throwaway cluster where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from spark_jobs.state.store import ControlStore


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

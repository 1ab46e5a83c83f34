"""A slot without a reader is found, unless its role reads tables meanwhile; so is a lost one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from spark_jobs.stack.slot import lost, unread
from tests.servers import outgrown_slots

SLOT = ROLE = "slot_reader"


@pytest.fixture
def address(postgres_socket: Path) -> Iterator[str]:
    """The database, as a role that no other test uses, with a slot."""
    server = f"host={postgres_socket} dbname=postgres user="
    with psycopg.connect(f"{server}tidemark", autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {ROLE} LOGIN REPLICATION".encode())
        connection.execute("SELECT pg_create_physical_replication_slot(%s, true)", [SLOT])
        yield server + ROLE
        connection.execute("SELECT pg_drop_replication_slot(%s)", [SLOT])
        connection.execute(f"DROP ROLE {ROLE}".encode())


def test_a_slot_that_nobody_reads(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as idle:
        idle.execute("SELECT 1")
        assert unread(address, SLOT)


def test_a_snapshot_holds_a_transaction(address: str) -> None:
    with psycopg.connect(address) as snapshot:
        snapshot.execute("SELECT 1")
        assert not unread(address, SLOT)
    assert unread(address, SLOT)


def test_a_slot_that_does_not_exist_yet(address: str) -> None:
    assert not unread(address, "absent")


def test_a_slot_whose_log_was_removed_is_lost_and_has_no_reader_to_wait_for(
    address: str, postgres_socket: Path
) -> None:
    assert unread(address, SLOT)
    assert not lost(address, SLOT)
    server = f"host={postgres_socket} dbname=postgres user=tidemark"
    with psycopg.connect(server, autocommit=True) as database, outgrown_slots(database):
        pass
    assert lost(address, SLOT)
    assert not unread(address, SLOT)
    assert not lost(address, "absent")

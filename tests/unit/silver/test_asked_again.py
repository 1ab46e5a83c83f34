"""A row is deleted only where the database does not have it when it is asked for that row."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.silver.errors import DatabaseUnreachableError
from spark_jobs.silver.repair.delete_backfill import MissedDeletion
from spark_jobs.silver.repair.recheck import still_gone

# Types in PostgreSQL and in silver, a value as PostgreSQL and as Spark give it.
CASES: dict[str, tuple[str, str, str, Any]] = {
    "blanks that were trimmed": ("CHAR(4)", "string", "'DE'", "DE"),
    "blanks that were sent": ("CHAR(4)", "string", "'DE'", "DE  "),
    "bigint": ("BIGINT", "bigint", "7", 7),
    "numeric": ("NUMERIC", "decimal(8,3)", "1.50", Decimal("1.500")),
    "real": ("REAL", "float", "0.5", 0.5),
    "boolean": ("BOOLEAN", "boolean", "true", True),
    "bytea": ("BYTEA", "binary", r"'\x00ff'", bytearray(b"\x00\xff")),
    "date": ("DATE", "date", "'2024-02-29'", date(2024, 2, 29)),
    "timestamp": (
        "TIMESTAMP",
        "timestamp_ntz",
        "'2024-02-29 12:00'",
        datetime.fromisoformat("2024-02-29T12:00"),
    ),
    "timestamptz": (
        "TIMESTAMPTZ",
        "timestamp",
        "'2024-02-29 12:00+00'",
        # As Spark gives it: without a zone, in that of this machine.
        datetime(2024, 2, 29, 12, tzinfo=UTC).astimezone().replace(tzinfo=None),
    ),
    "uuid": (
        "UUID",
        "string",
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
}


def missed(value: Any) -> MissedDeletion:
    return MissedDeletion(row={"id": value}, partition=0, key=b"", value=b"", sequence="")


def asked(
    socket: Path, kind: str, declared: str, values: list[str], row: Any
) -> tuple[list[MissedDeletion], list[MissedDeletion]]:
    """What is gone, and what is kept."""
    dsn = f"host={socket} user=tidemark dbname=postgres"
    source = SourceEntry(
        name="asked",
        format=SourceFormat.DEBEZIUM,
        topic="shop.public.asked",
        table="public.asked",
        keys=("id",),
        file="sources/asked.yml",
        columns=(Column(name="id", type=declared),),
    )
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS asked")
        connection.execute(f"CREATE TABLE asked (id {kind})".encode())
        for value in values:
            connection.execute(f"INSERT INTO asked VALUES ({value})".encode())
    kept: list[MissedDeletion] = []
    return list(still_gone(dsn, source, [missed(row)], kept=kept)), kept


@pytest.mark.parametrize("name", CASES)
def test_existing_rows_are_kept_and_missing_rows_are_gone(postgres_socket: Path, name: str) -> None:
    kind, declared, value, row = CASES[name]
    assert asked(postgres_socket, kind, declared, [value], row) == ([], [missed(row)])
    assert asked(postgres_socket, kind, declared, [], row) == ([missed(row)], [])


def test_a_row_that_cannot_be_asked_for_is_kept(postgres_socket: Path) -> None:
    found = asked(postgres_socket, "INTERVAL", "string", [], "no interval")
    assert found == ([], [missed("no interval")])


def test_a_database_that_does_not_answer(tmp_path: Path) -> None:
    source = SourceEntry(
        name="asked",
        format=SourceFormat.DEBEZIUM,
        topic="shop.public.asked",
        table="public.asked",
        keys=("id",),
        file="sources/asked.yml",
        columns=(Column(name="id", type="bigint"),),
    )
    with pytest.raises(DatabaseUnreachableError) as caught:
        list(still_gone(f"host={tmp_path} user=x dbname=x", source, [missed(1)], kept=[]))
    assert caught.value.table == "public.asked"

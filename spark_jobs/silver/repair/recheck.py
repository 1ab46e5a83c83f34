"""Queries each row in the database once more, right before its delete is written.

The server compares the key by its own rules, so that this check shares no code with the comparison
that found the row. A row that exists, or cannot be queried, is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from typing import Any

import psycopg
from psycopg import sql

from spark_jobs.access import timeouts
from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.errors import DatabaseUnreachableError
from spark_jobs.silver.repair.delete_backfill import MissedDeletion


def still_gone(
    dsn: str, source: SourceEntry, rows: Iterable[MissedDeletion], *, kept: list[MissedDeletion]
) -> Iterator[MissedDeletion]:
    """The rows that the database does not have when each is queried.

    Args:
        dsn: connection string of the source database.
        source: a Debezium source with a ``table``.
        rows: from ``missed_deletions``.
        kept: list to which the other rows are added.

    Raises:
        DatabaseUnreachableError: the database or the table cannot be read.
        CertificateRefusedError: the server's certificate is not trusted.
    """
    table = source.table or ""
    types = {column.name: column.type for column in source.columns}
    query = sql.SQL("SELECT EXISTS (SELECT FROM {} WHERE {})").format(
        sql.Identifier(*table.split(".")),
        sql.SQL(" AND ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder())
            for name in source.keys
        ),
    )
    options = "-c timezone=UTC -c datestyle=ISO -c default_transaction_read_only=on"
    try:
        with psycopg.connect(
            dsn, **timeouts.POSTGRES, options=options, autocommit=True
        ) as connection:
            for row in rows:
                values = [_text(row.row[name], types[name]) for name in source.keys]
                if _exists(connection, query, values):
                    kept.append(row)
                else:
                    yield row
    except psycopg.OperationalError as error:
        refused = certificate_refusal(dsn, error)
        raise refused or DatabaseUnreachableError(table, str(error)) from error


def _exists(connection: psycopg.Connection[Any], query: sql.Composed, values: list[str]) -> bool:
    """Whether the row exists; True if the server cannot run the query."""
    try:
        found = connection.execute(query, values).fetchone()
    except (psycopg.DataError, psycopg.ProgrammingError):
        return True
    return found is None or bool(found[0])


def _text(value: Any, type_name: str) -> str:
    """A typed value as PostgreSQL input; the server casts it to the column's type."""
    match value:
        case bool():
            return str(value).lower()
        case bytes() | bytearray():
            return f"\\x{value.hex()}"
        case datetime() if type_name == "timestamp":
            # Spark returns times in this machine's time zone.
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case _:
            return str(value)

"""``INSERT … ON CONFLICT`` for both databases; SQLAlchemy Core has no common construct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


def insert_or_keep(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row, given by column, unless its key exists; returns whether it was inserted."""
    insert = _insert(connection, table, row)
    # On PostgreSQL SQLAlchemy drops the row count of an INSERT by default.
    counted = {"preserve_rowcount": True}
    done = connection.execute(insert.on_conflict_do_nothing(), execution_options=counted)
    return done.rowcount > 0


def insert_or_replace(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, given by column, or replace the row with the same key."""
    insert = _insert(connection, table, row)
    keys = [column.name for column in table.primary_key]
    changed = {name: value for name, value in row.items() if name not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=changed))


def _insert(
    connection: Connection, table: Table, row: Mapping[str, Any]
) -> postgresql.Insert | sqlite.Insert:
    if connection.dialect.name == "postgresql":
        return postgresql.insert(table).values(dict(row))
    return sqlite.insert(table).values(dict(row))

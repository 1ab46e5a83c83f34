"""Migrates a control database to this release's schema; idempotent."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sqlalchemy import Connection, inspect, select, text, update
from sqlalchemy.exc import DatabaseError

from spark_jobs.state.engine import make_engine
from spark_jobs.state.errors import ControlSchemaNewerError, ControlUnreachableError
from spark_jobs.state.tables import (
    ATTEMPTS,
    METADATA,
    SCHEMA,
    SCHEMA_VERSION,
    STREAM_PROGRESS,
)
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_replace

# An arbitrary constant, the same in all processes and releases.
ADVISORY_LOCK: Final = 7_162_013
_SQLITE_FILE: Final = "sqlite:///"
# Table names of older releases.
_FORMER_TABLES: Final = {"holds": "pinned_views"}
# Values of older releases: column, old value, new value.
_FORMER_VALUES: Final = (
    (ATTEMPTS.c.status, "held", "blocked"),
    (ATTEMPTS.c.reason_code, "VIEW_HELD", "VIEW_PINNED"),
    (STREAM_PROGRESS.c.state, "held", "blocked"),
)


def found_version(url: str) -> int | None:
    """The schema version of the database at a URL, read only; None if it does not exist.

    Raises:
        ControlUnreachableError: the database cannot be reached.
        ControlSchemaNewerError: a newer release migrated it.
    """
    if url.startswith(_SQLITE_FILE) and not Path(url.removeprefix(_SQLITE_FILE)).exists():
        return None
    engine = make_engine(url)
    try:
        with engine.begin() as connection:
            return schema_version(connection)
    except DatabaseError as error:
        shown = engine.url.render_as_string(hide_password=True)
        raise ControlUnreachableError(shown, str(error.orig)) from error
    finally:
        engine.dispose()


def schema_version(connection: Connection) -> int | None:
    """The database's schema version; None before its first migration.

    Raises:
        ControlSchemaNewerError: a newer release migrated it.
    """
    if not inspect(connection).has_table(SCHEMA.name):
        return None
    found = connection.scalar(select(SCHEMA.c.version).where(SCHEMA.c.id == 1))
    if found is not None and found > SCHEMA_VERSION:
        raise ControlSchemaNewerError(found, SCHEMA_VERSION)
    return found


def migrate(connection: Connection) -> None:
    """Create what is missing, in a write transaction.

    Raises:
        ControlSchemaNewerError: a newer release migrated the database.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK}
        ).close()
    if schema_version(connection) == SCHEMA_VERSION:
        return
    row = {"id": 1, "version": SCHEMA_VERSION, "migrated_at": utc_now()}
    there = set(inspect(connection).get_table_names())
    if not there:
        # There is nothing to look for, nor to rename.
        METADATA.create_all(connection, checkfirst=False)
        insert_or_replace(connection, SCHEMA, row)
        return
    _rename_tables(connection, there)
    _add_columns(connection)
    METADATA.create_all(connection)
    insert_or_replace(connection, SCHEMA, row)
    _rename_values(connection)


def _rename_tables(connection: Connection, there: set[str]) -> None:
    for old, new in _FORMER_TABLES.items():
        if old in there and new not in there:
            connection.execute(text(f'ALTER TABLE "{old}" RENAME TO "{new}"')).close()


def _rename_values(connection: Connection) -> None:
    for column, old, new in _FORMER_VALUES:
        renamed = update(column.table).where(column == old).values({column.name: new})
        connection.execute(renamed).close()


def _add_columns(connection: Connection) -> None:
    """Add columns that tables of older releases lack; all are nullable."""
    inspector = inspect(connection)
    for table in METADATA.tables.values():
        if not inspector.has_table(table.name):
            continue
        there = {column["name"] for column in inspector.get_columns(table.name)}
        for column in table.columns:
            if column.name not in there:
                kind = column.type.compile(connection.dialect)
                statement = f'ALTER TABLE "{table.name}" ADD COLUMN "{column.name}" {kind}'
                connection.execute(text(statement)).close()

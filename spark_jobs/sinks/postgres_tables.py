"""Tables of sinks in PostgreSQL; no function ends the transaction."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from spark_jobs.sinks.rows import RowCodec

# Required for unique indexes with NULLS NOT DISTINCT.
MINIMUM_VERSION = 150_000
# The server cuts longer names.
NAME_BYTES = 63
# The table of the sinks' watermarks in a database.
MARKS = sql.Identifier("tidemark", "sinks")
Connection = psycopg.Connection[Any]


def exists(connection: Connection, table: sql.Identifier) -> bool:
    """Whether the table exists."""
    name = table.as_string(connection)
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone()
    return bool(found and found[0])


def make_watermarks(connection: Connection) -> None:
    """Create the table of watermarks, unless it exists."""
    if exists(connection, MARKS):
        return
    # Serializes sinks that start at the same time.
    connection.execute("SELECT pg_advisory_xact_lock(hashtext('tidemark.sinks'))")
    _make_schema(connection, "tidemark")
    _execute(
        connection,
        "CREATE TABLE IF NOT EXISTS {} (sink text PRIMARY KEY, table_id text NOT NULL, "
        "version bigint NOT NULL, epoch bigint NOT NULL, "
        "delivered_at timestamptz NOT NULL DEFAULT now())",
        MARKS,
    )


def make_table(connection: Connection, target: str, codec: RowCodec) -> None:
    """Create a sink's table with its index, or add columns.

    A column whose type changes loses its values, and all rows are deleted if the keys change: the
    caller fills the table again.

    Args:
        connection: in the transaction that fills the table.
        target: ``schema.table``.
        codec: codec of its rows.
    """
    schema, _, name = target.partition(".")
    table = sql.Identifier(schema, name)
    _make_schema(connection, schema)
    if not exists(connection, table):
        _execute(connection, "CREATE TABLE {} ()", table)
    wanted = {one.name: column_type(one.type) for one in codec.schema}
    have = _columns(connection, table)
    for column, kind in have.items():
        if kind != wanted.get(column):
            _execute(connection, "ALTER TABLE {} DROP COLUMN {}", table, sql.Identifier(column))
    for column, kind in wanted.items():
        if kind != have.get(column):
            added = sql.Identifier(column), sql.SQL(kind)
            _execute(connection, "ALTER TABLE {} ADD COLUMN {} {}", table, *added)
    _make_index(connection, schema, name, keys=names_of(codec.keys))


def names_of(columns: Iterable[str]) -> sql.Composed:
    """Columns as a SQL list."""
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def column_type(kind: pa.DataType) -> str:
    """PostgreSQL's type of a column, as the server spells it.

    >>> column_type(pa.decimal128(12, 2)), column_type(pa.list_(pa.int32()))
    ('numeric(12,2)', 'jsonb')
    """
    checks: list[tuple[Callable[[pa.DataType], bool], str]] = [
        (pa.types.is_boolean, "boolean"),
        (lambda one: pa.types.is_int8(one) or pa.types.is_int16(one), "smallint"),
        (pa.types.is_int32, "integer"),
        (pa.types.is_integer, "bigint"),
        (pa.types.is_float32, "real"),
        (pa.types.is_floating, "double precision"),
        (pa.types.is_date, "date"),
        (pa.types.is_nested, "jsonb"),
        (lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one), "bytea"),
    ]
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return f"timestamp {'with' if kind.tz else 'without'} time zone"
    return next((name for holds, name in checks if holds(kind)), "text")


def text_maker(kind: pa.DataType) -> Callable[[Any], Any]:
    """Converts a JSON value to the input of COPY for the column."""
    match column_type(kind):
        case "jsonb":
            return json.dumps
        case "bytea":
            return base64.b64decode
        case _:
            return lambda value: value


def _make_schema(connection: Connection, name: str) -> None:
    # CREATE ... IF NOT EXISTS needs the permission to create even if there is nothing to do.
    known = connection.execute("SELECT to_regnamespace(%s)", [name]).fetchone()
    if known and known[0] is None:
        _execute(connection, "CREATE SCHEMA {}", sql.Identifier(name))


def _columns(connection: Connection, table: sql.Identifier) -> dict[str, str]:
    """Types of a table's columns, as the server spells them."""
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [table.as_string(connection)],
    ).fetchall()
    return dict(found)


def index_name(table: str) -> str:
    """The name of a table's index, unique in its schema.

    >>> index_name("orders"), index_name(f"orders_{'x' * 60}")
    ('orders_tidemark', 'orders_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_b7840af5_tidemark')
    """
    name = f"{table}_tidemark"
    if len(name) <= NAME_BYTES:
        return name
    digest = hashlib.sha256(table.encode()).hexdigest()[:8]
    return f"{table[: NAME_BYTES - 18]}_{digest}_tidemark"


def _rename_index(connection: Connection, schema: str, table: str) -> None:
    """Give an index of an earlier release, whose name other tables would use too, its own name."""
    old, new = f"{table[:50]}_tidemark", index_name(table)
    found = connection.execute(
        "SELECT 1 FROM pg_indexes WHERE schemaname = %s AND tablename = %s AND indexname = %s",
        [schema, table, old],
    ).fetchone()
    if found and old != new:
        names = sql.Identifier(schema, old), sql.Identifier(new)
        _execute(connection, "ALTER INDEX {} RENAME TO {}", *names)


def _make_index(connection: Connection, schema: str, table: str, *, keys: sql.Composed) -> None:
    _rename_index(connection, schema, table)
    name = index_name(table)
    wanted = f"({keys.as_string(connection)}) NULLS NOT DISTINCT"
    found = connection.execute(
        "SELECT indexdef FROM pg_indexes "
        "WHERE schemaname = %s AND tablename = %s AND indexname = %s",
        [schema, table, name],
    ).fetchone()
    if found and _same_index(found[0], wanted):
        return
    if found:
        _execute(connection, "DROP INDEX {}", sql.Identifier(schema, name))
    # Existing rows may have duplicate keys.
    _execute(connection, "DELETE FROM {}", sql.Identifier(schema, table))
    _execute(
        connection,
        "CREATE UNIQUE INDEX {} ON {} ({}) NULLS NOT DISTINCT",
        *(sql.Identifier(name), sql.Identifier(schema, table), keys),
    )


def _same_index(definition: str, wanted: str) -> bool:
    """Whether an index has these columns; the server quotes names only if needed."""
    return definition.replace('"', "").endswith(wanted.replace('"', ""))


def _execute(connection: Connection, text: str, *parts: Any) -> None:
    connection.execute(sql.SQL(text).format(*parts))

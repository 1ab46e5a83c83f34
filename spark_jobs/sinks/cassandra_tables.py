"""Tables of sinks in Cassandra, and conversion of their values.

Cassandra's ``timestamp`` has milliseconds only, so timestamps are stored as sortable text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from cassandra.cluster import Session
from cassandra.metadata import escape_name

from spark_jobs.sinks.rows import RowCodec

# The table of the sinks' watermarks in a keyspace.
MARKS = "tidemark_sinks"
_MOST_COPIES = 3


def table_name(target: str) -> str:
    """A table's name in CQL.

    >>> table_name("serving.spend")
    '"serving"."spend"'
    """
    return ".".join(map(escape_name, target.split(".")))


def marks_name(target: str) -> str:
    """The table of watermarks in a sink's keyspace."""
    return table_name(f"{target.partition('.')[0]}.{MARKS}")


def columns_of(session: Session, target: str) -> dict[str, tuple[str, bool]]:
    """For each column: its type, and whether it is part of the key; empty without a table."""
    keyspace, _, table = target.partition(".")
    found = session.execute(
        "SELECT column_name, type, kind FROM system_schema.columns "
        "WHERE keyspace_name = %s AND table_name = %s",
        (keyspace, table),
    )
    return {
        one["column_name"]: (one["type"], one["kind"] in {"partition_key", "clustering"})
        for one in found
    }


def make_marks(session: Session, target: str) -> None:
    """Create the table of watermarks and its keyspace, unless they exist."""
    keyspace = target.partition(".")[0]
    known = session.execute(
        "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s", (keyspace,)
    )
    # IF NOT EXISTS needs the permission to create even if there is nothing to do.
    if known.one() is None:
        copies = min(_MOST_COPIES, len(session.cluster.metadata.all_hosts()))
        session.execute(
            f"CREATE KEYSPACE IF NOT EXISTS {escape_name(keyspace)} WITH replication = "
            f"{{'class': 'NetworkTopologyStrategy', 'replication_factor': {copies}}}"
        )
    if not columns_of(session, f"{keyspace}.{MARKS}"):
        session.execute(
            f"CREATE TABLE IF NOT EXISTS {marks_name(target)} (sink text PRIMARY KEY, "
            "table_id text, version bigint, epoch bigint, begun bigint, written_at bigint, "
            "delivered_at timestamp)"
        )


def make_table(session: Session, target: str, codec: RowCodec) -> None:
    """Create a sink's table, or add columns.

    Cassandra cannot change keys or types: then the table is dropped and recreated, and the caller
    fills it again.
    """
    wanted = {one.name: (column_type(one.type), one.name in codec.keys) for one in codec.schema}
    have = columns_of(session, target)
    if have == wanted:
        return
    table = table_name(target)
    if have and have.items() <= wanted.items():
        for column in wanted.keys() - have.keys():
            kind, _ = wanted[column]
            session.execute(f"ALTER TABLE {table} ADD {escape_name(column)} {kind}")
        return
    if have:
        session.execute(f"DROP TABLE {table}")
    listed = ", ".join(f"{escape_name(name)} {kind}" for name, (kind, _) in wanted.items())
    keys = ", ".join(map(escape_name, codec.keys))
    session.execute(f"CREATE TABLE {table} ({listed}, PRIMARY KEY (({keys})))")


def column_type(kind: pa.DataType) -> str:
    """Cassandra's type of a column, as the server spells it.

    >>> column_type(pa.decimal128(12, 2)), column_type(pa.list_(pa.int32()))
    ('decimal', 'text')
    """
    checks: list[tuple[Callable[[pa.DataType], bool], str]] = [
        (pa.types.is_boolean, "boolean"),
        (pa.types.is_int8, "tinyint"),
        (pa.types.is_int16, "smallint"),
        (pa.types.is_int32, "int"),
        (pa.types.is_integer, "bigint"),
        (pa.types.is_float32, "float"),
        (pa.types.is_floating, "double"),
        (pa.types.is_decimal, "decimal"),
        (pa.types.is_date, "date"),
        (lambda one: pa.types.is_binary(one) or pa.types.is_large_binary(one), "blob"),
    ]
    return next((name for holds, name in checks if holds(kind)), "text")


def to_cassandra(kind: pa.DataType) -> Callable[[Any], Any]:
    """Converts a JSON value, not null, to the driver's value."""
    match column_type(kind):
        case "float" | "double":
            return float
        case "decimal":
            return Decimal
        case "date":
            return date.fromisoformat
        case "blob":
            return base64.b64decode
        case "text" if pa.types.is_nested(kind):
            return json.dumps
        case _:
            return lambda value: value


def from_cassandra(kind: pa.DataType) -> Callable[[Any], Any]:
    """Converts the driver's value, not null, to the codec's value."""
    if pa.types.is_date(kind):
        return lambda value: value.date()
    return json.loads if pa.types.is_nested(kind) else lambda value: value

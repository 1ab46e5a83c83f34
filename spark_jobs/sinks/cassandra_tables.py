"""The tables that sinks make in Cassandra, and how values get there and back.

Cassandra's own ``timestamp`` counts milliseconds, so instants are text, which keeps every digit and
sorts as they follow each other.
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

# How far the sinks of a keyspace have come.
MARKS = "tidemark_sinks"
_MOST_COPIES = 3


def table_name(target: str) -> str:
    """A table as statements name it.

    >>> table_name("serving.spend")
    '"serving"."spend"'
    """
    return ".".join(map(escape_name, target.split(".")))


def marks_name(target: str) -> str:
    """The table of the watermarks beside a sink's table."""
    return table_name(f"{target.partition('.')[0]}.{MARKS}")


def columns_of(session: Session, target: str) -> dict[str, tuple[str, bool]]:
    """Type of each column of a table, and whether it is one of the key; empty without a table."""
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
    """Make the table of the watermarks, and its keyspace, unless they are there."""
    keyspace = target.partition(".")[0]
    known = session.execute(
        "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = %s", (keyspace,)
    )
    # IF NOT EXISTS asks for the right to create even where there is nothing to do.
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
    """Make a sink's table, or give it the columns that the rows have.

    A table with other keys, or another type of a column, is dropped and recreated, as Cassandra
    changes neither: whoever calls fills it again.
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
    """Cassandra's type for a column, as the server itself spells it.

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
    """From JSON's value, which is not null, to what the driver takes for the column."""
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
    """From the driver's value, which is not null, to what the codec takes for the column."""
    if pa.types.is_date(kind):
        return lambda value: value.date()
    return json.loads if pa.types.is_nested(kind) else lambda value: value

"""A table in PostgreSQL: rows and watermark change in one transaction, so each change counts once.

The watermarks of all sinks of a database are in the table ``tidemark.sinks``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.rows import dict_row

from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.errors import (
    SinkMovedError,
    SinkRefusedError,
    SinkUnreachableError,
    SinkValueError,
)
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.target import Watermark
from spark_jobs.state.failpoints import failpoint

# Unique indexes that take NULL for a value like others came with this version.
MINIMUM_VERSION = 150_000
FETCHED_ROWS = 10_000
_LEAVES = "__leaves"
_MARKS = sql.Identifier("tidemark", "sinks")
# A server that is gone or paused must not hold the sink for ever.
_CONNECTION: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "options": "-c timezone=UTC -c lock_timeout=30s -c idle_in_transaction_session_timeout=600s",
}


@dataclass
class PostgresTarget:
    """A sink's table."""

    sink: SinkEntry
    codec: RowCodec
    address: str = field(repr=False)
    _opened: psycopg.Connection[Any] | None = None

    def watermark(self) -> Watermark | None:
        with self._told():
            self._connection.rollback()
            found = self._stored()
            self._connection.rollback()
            return found

    def occupied(self) -> bool:
        if self.missing():
            return False
        with self._told():
            query = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(self._table)
            found = self._connection.execute(query).fetchone() is not None
            self._connection.rollback()
            return found

    def missing(self) -> bool:
        with self._told():
            found = self._exists(self._table)
            self._connection.rollback()
            return not found

    def prepare(self) -> None:
        """Make schema, table and index; all of it is seen with the delivery that follows."""
        with self._told():
            if self._connection.info.server_version < MINIMUM_VERSION:
                raise SinkValueError(self.sink.name, "PostgreSQL 15 or later is needed.")
            self._make_watermarks()
            self._make_schema(self.sink.target.partition(".")[0])
            wanted = {one.name: column_type(one.type) for one in self.codec.schema}
            if not self._exists(self._table):
                self._execute("CREATE TABLE {} ()", self._table)
            have = self._columns()
            for name in have:
                if have[name] != wanted.get(name):
                    column = sql.Identifier(name)
                    self._execute("ALTER TABLE {} DROP COLUMN {}", self._table, column)
            for name, kind in wanted.items():
                if have.get(name) != kind:
                    added = sql.Identifier(name), sql.SQL(kind)
                    self._execute("ALTER TABLE {} ADD COLUMN {} {}", self._table, *added)
            self._make_index()

    def rows(self) -> Iterator[tuple[str, str]]:
        with self._told():
            query = sql.SQL("SELECT {} FROM {}").format(self._names(), self._table)
            with self._connection.cursor("rows", row_factory=dict_row) as cursor:
                cursor.itersize = FETCHED_ROWS
                cursor.execute(query)
                for values in cursor:
                    row = self.codec.row(values)
                    yield self.codec.key_of(row), row

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        with self._told():
            self._make_watermarks()
            if self._stored(lock=True) != before:
                raise SinkMovedError(self.sink.name)
            count = self._apply(changes)
            self._execute(
                "INSERT INTO {} AS s (sink, table_id, version, epoch) VALUES ({}, {}, {}, {}) "
                "ON CONFLICT (sink) DO UPDATE SET table_id = EXCLUDED.table_id, "
                "version = EXCLUDED.version, epoch = EXCLUDED.epoch, delivered_at = now()",
                *(_MARKS, self.sink.name, after.table_id, after.version, after.epoch),
            )
            failpoint("sink_delivered")
            self._connection.commit()
            return count

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _connection(self) -> psycopg.Connection[Any]:
        if self._opened is None:
            self._opened = psycopg.connect(
                self.address, application_name=f"tidemark {self.sink.name}"[:63], **_CONNECTION
            )
        return self._opened

    @cached_property
    def _table(self) -> sql.Identifier:
        return sql.Identifier(*self.sink.target.split("."))

    def _names(self, columns: Iterable[str] | None = None, prefix: str = "") -> sql.Composed:
        named = columns if columns is not None else self.codec.schema.names
        start = sql.SQL(prefix)
        return sql.SQL(", ").join(start + sql.Identifier(one) for one in named)

    def _execute(self, text: str, *parts: Any) -> None:
        self._connection.execute(sql.SQL(text).format(*parts))

    def _exists(self, table: sql.Identifier) -> bool:
        name = table.as_string(self._connection)
        found = self._connection.execute("SELECT to_regclass(%s) IS NOT NULL", [name]).fetchone()
        return bool(found and found[0])

    def _stored(self, *, lock: bool = False) -> Watermark | None:
        if not self._exists(_MARKS):
            return None
        query = sql.SQL("SELECT table_id, version, epoch FROM {} WHERE sink = {}{}").format(
            _MARKS, self.sink.name, sql.SQL(" FOR UPDATE" if lock else "")
        )
        found = self._connection.execute(query).fetchone()
        return Watermark(*found) if found else None

    def _make_schema(self, name: str) -> None:
        # CREATE ... IF NOT EXISTS asks for the right to create even where there is nothing to do.
        known = self._connection.execute("SELECT to_regnamespace(%s)", [name]).fetchone()
        if known and known[0] is None:
            self._execute("CREATE SCHEMA {}", sql.Identifier(name))

    def _make_watermarks(self) -> None:
        if self._exists(_MARKS):
            return
        # Sinks that start at the same moment wait for each other here.
        self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('tidemark.sinks'))")
        self._make_schema("tidemark")
        self._execute(
            "CREATE TABLE IF NOT EXISTS {} (sink text PRIMARY KEY, table_id text NOT NULL, "
            "version bigint NOT NULL, epoch bigint NOT NULL, "
            "delivered_at timestamptz NOT NULL DEFAULT now())",
            _MARKS,
        )

    def _columns(self) -> dict[str, str]:
        found = self._connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
            "ORDER BY attnum",
            [self._table.as_string(self._connection)],
        ).fetchall()
        return dict(found)

    def _make_index(self) -> None:
        schema, _, table = self.sink.target.partition(".")
        name = f"{table[:50]}_tidemark"
        keys = self._names(self.codec.keys)
        wanted = f"({keys.as_string(self._connection)}) NULLS NOT DISTINCT"
        found = self._connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE schemaname = %s AND indexname = %s",
            [schema, name],
        ).fetchone()
        if found and _same_index(found[0], wanted):
            return
        if found:
            self._execute("DROP INDEX {}", sql.Identifier(schema, name))
        # Rows that are there may share a key; what follows fills the table again.
        self._execute("DELETE FROM {}", self._table)
        self._execute(
            "CREATE UNIQUE INDEX {} ON {} ({}) NULLS NOT DISTINCT",
            *(sql.Identifier(name), self._table, keys),
        )

    def _apply(self, changes: Iterable[Change]) -> int:
        """Send the changes to a table of the transaction's own, and bring them in from there."""
        names = self.codec.schema.names
        staged = sql.Identifier("__staged")
        self._execute(
            "CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {}, FALSE AS {} FROM {} WITH NO DATA",
            *(staged, self._names(), sql.Identifier(_LEAVES), self._table),
        )
        copy = sql.SQL("COPY {} ({}) FROM STDIN").format(staged, self._names([*names, _LEAVES]))
        texts = {one.name: text_maker(one.type) for one in self.codec.schema}
        count = left = 0
        null_keys = False
        with self._connection.cursor().copy(copy) as stream:
            for change in changes:
                leaves = change.after is None
                values = json.loads(change.key if change.after is None else change.after)
                stream.write_row(
                    [*(_text(values.get(name), texts[name]) for name in names), leaves]
                )
                count, left = count + 1, left + leaves
                null_keys = null_keys or any(values[key] is None for key in self.codec.keys)
        if left:
            self._delete(staged, "=")
        if left and null_keys:
            self._delete(staged, "IS NOT DISTINCT FROM")
        others = [name for name in names if name not in self.codec.keys]
        replace = sql.SQL(", ").join(
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(one)) for one in others
        )
        self._execute(
            "INSERT INTO {} ({}) SELECT {} FROM {} WHERE NOT {} ON CONFLICT ({}) DO {}",
            *(self._table, self._names(), self._names(), staged, sql.Identifier(_LEAVES)),
            self._names(self.codec.keys),
            sql.SQL("UPDATE SET ") + replace if others else sql.SQL("NOTHING"),
        )
        return count

    def _delete(self, staged: sql.Identifier, equals: str) -> None:
        """Delete by key; only ``=`` finds rows by the index, and it finds no NULL."""
        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} {1} s.{0}").format(sql.Identifier(one), sql.SQL(equals))
            for one in self.codec.keys
        )
        leaves = sql.SQL("s.{}").format(sql.Identifier(_LEAVES))
        self._execute("DELETE FROM {} AS t USING {} AS s WHERE {} AND {}", self._table, staged,
                      leaves, same)  # fmt: skip

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Let go of the connection after a failure, and say what it was."""
        name = self.sink.name
        try:
            yield
        except SinkRefusedError:
            self.close()
            raise
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self.close()
            raise SinkUnreachableError(name, "Postgres", first_line(error)) from error
        except psycopg.Error as error:
            self.close()
            raise SinkValueError(name, first_line(error)) from error
        except BaseException:
            self.close()
            raise


def column_type(kind: pa.DataType) -> str:
    """PostgreSQL's type for a column, as the server itself spells it.

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
    """From JSON's value to what COPY takes for the column."""
    match column_type(kind):
        case "jsonb":
            return json.dumps
        case "bytea":
            return base64.b64decode
        case _:
            return lambda value: value


def first_line(error: Exception) -> str:
    """What a driver says, without the statement and its values."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _text(value: Any, make: Callable[[Any], Any]) -> Any:
    return None if value is None else make(value)


def _same_index(definition: str, wanted: str) -> bool:
    """Whether an index is over these columns; the server quotes names only where it must."""
    return definition.replace('"', "").endswith(wanted.replace('"', ""))

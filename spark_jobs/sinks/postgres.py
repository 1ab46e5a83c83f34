"""A sink's table in PostgreSQL: rows and watermark change in one transaction.

The watermarks of all sinks of a database are in the table ``tidemark.sinks``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from spark_jobs.access import timeouts
from spark_jobs.access.postgres import certificate_refusal
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.errors import (
    SinkMovedError,
    SinkUnreachableError,
    SinkValueError,
)
from spark_jobs.sinks.postgres_tables import (
    MARKS,
    MINIMUM_VERSION,
    exists,
    make_table,
    make_watermarks,
    names_of,
    text_maker,
)
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.target import Watermark
from spark_jobs.state.failpoints import failpoint

FETCHED_ROWS = 10_000
_LEAVES = "__leaves"
_OPTIONS = "-c timezone=UTC -c lock_timeout=30s -c idle_in_transaction_session_timeout=600s"


@dataclass
class PostgresTarget:
    """A sink's table."""

    sink: SinkEntry
    codec: RowCodec
    address: str = field(repr=False)
    _opened: psycopg.Connection[Any] | None = None

    def watermark(self) -> Watermark | None:
        with self._translated_errors():
            self._connection.rollback()
            found = self._stored()
            self._connection.rollback()
            return found

    def occupied(self) -> bool:
        if self.missing():
            return False
        with self._translated_errors():
            query = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(self._table)
            found = self._connection.execute(query).fetchone() is not None
            self._connection.rollback()
            return found

    def missing(self) -> bool:
        with self._translated_errors():
            found = exists(self._connection, self._table)
            self._connection.rollback()
            return not found

    def prepare(self) -> None:
        """Create schema, table and index; visible together with the following delivery.

        Raises:
            SinkValueError: the server is older than PostgreSQL 15.
        """
        with self._translated_errors():
            if self._connection.info.server_version < MINIMUM_VERSION:
                raise SinkValueError(self.sink.name, "PostgreSQL 15 or later is needed.")
            make_watermarks(self._connection)
            make_table(self._connection, self.sink.target, self.codec)

    def rows(self) -> Iterator[tuple[str, str]]:
        with self._translated_errors():
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
        with self._translated_errors():
            make_watermarks(self._connection)
            if self._stored(lock=True) != before:
                raise SinkMovedError(self.sink.name)
            count = self._apply(changes)
            self._execute(
                "INSERT INTO {} AS s (sink, table_id, version, epoch) VALUES ({}, {}, {}, {}) "
                "ON CONFLICT (sink) DO UPDATE SET table_id = EXCLUDED.table_id, "
                "version = EXCLUDED.version, epoch = EXCLUDED.epoch, delivered_at = now()",
                *(MARKS, self.sink.name, after.parts["table_id"], after.version, after.epoch),
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
                self.address,
                application_name=f"tidemark {self.sink.name}"[:63],
                options=_OPTIONS,
                **timeouts.POSTGRES,
            )
        return self._opened

    @cached_property
    def _table(self) -> sql.Identifier:
        return sql.Identifier(*self.sink.target.split("."))

    def _names(self, columns: Iterable[str] | None = None) -> sql.Composed:
        return names_of(self.codec.schema.names if columns is None else columns)

    def _execute(self, text: str, *parts: Any) -> None:
        self._connection.execute(sql.SQL(text).format(*parts))

    def _stored(self, *, lock: bool = False) -> Watermark | None:
        if not exists(self._connection, MARKS):
            return None
        query = sql.SQL("SELECT table_id, version, epoch FROM {} WHERE sink = {}{}").format(
            MARKS, self.sink.name, sql.SQL(" FOR UPDATE" if lock else "")
        )
        found = self._connection.execute(query).fetchone()
        return Watermark.stored(*found) if found else None

    def _apply(self, changes: Iterable[Change]) -> int:
        """Copy the changes to a temporary table, and merge them from there."""
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
        """Delete by key; only ``=`` uses the index, and it does not match NULL."""
        same = sql.SQL(" AND ").join(
            sql.SQL("t.{0} {1} s.{0}").format(sql.Identifier(one), sql.SQL(equals))
            for one in self.codec.keys
        )
        leaves = sql.SQL("s.{}").format(sql.Identifier(_LEAVES))
        self._execute("DELETE FROM {} AS t USING {} AS s WHERE {} AND {}", self._table, staged,
                      leaves, same)  # fmt: skip

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """After a failure close the connection, and raise one of our errors."""
        name = self.sink.name
        try:
            yield
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self.close()
            refused = certificate_refusal(self.address, error)
            raise refused or SinkUnreachableError(name, "Postgres", first_line(error)) from error
        except psycopg.Error as error:
            self.close()
            raise SinkValueError(name, first_line(error)) from error
        except BaseException:
            self.close()
            raise


def first_line(error: Exception) -> str:
    """A driver's message, without the statement and its values."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _text(value: Any, make: Callable[[Any], Any]) -> Any:
    return None if value is None else make(value)

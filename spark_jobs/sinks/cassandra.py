"""A sink's table in Cassandra: rows by key, with the delivery's write timestamp.

Cassandra has no transactions over several rows. So a delivery first marks the watermark as in
progress, writes its rows, and then advances the watermark; both updates of the watermark are
conditional, so that only one process succeeds. Write timestamps of a sink only grow, so that late
writes of a killed delivery lose against those of its repetition.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from cassandra import ConsistencyLevel, DriverException, RequestValidationException
from cassandra.cluster import Cluster, NoHostAvailable, Session
from cassandra.concurrent import execute_concurrent
from cassandra.connection import ConnectionException
from cassandra.metadata import escape_name
from cassandra.protocol import ErrorMessage
from cassandra.query import BoundStatement, PreparedStatement, SimpleStatement

from spark_jobs.access.cassandra import cassandra_cluster
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.sinks.cassandra_tables import (
    MARKS,
    columns_of,
    from_cassandra,
    make_marks,
    make_table,
    marks_name,
    table_name,
    to_cassandra,
)
from spark_jobs.sinks.changes import Change
from spark_jobs.sinks.errors import SinkMovedError, SinkUnreachableError, SinkValueError
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.target import Watermark, underway
from spark_jobs.state.failpoints import failpoint

FETCHED_ROWS = 1_000
ROWS_AT_ONCE = 5_000
# Concurrent writes of one sink.
WRITES_AT_ONCE = 64


@dataclass(frozen=True)
class _Mark:
    """The stored watermark, and the newest delivery's write timestamp in microseconds."""

    watermark: Watermark | None = None
    written_at: int = 0


@dataclass
class CassandraTarget:
    """A sink's table."""

    sink: SinkEntry
    codec: RowCodec
    address: str = field(repr=False)
    _cluster: Cluster | None = None
    _opened: Session | None = None
    _prepared: dict[str, PreparedStatement] = field(default_factory=dict)

    def watermark(self) -> Watermark | None:
        with self._translated_errors():
            return self._stored().watermark

    def occupied(self) -> bool:
        if self.missing():
            return False
        with self._translated_errors():
            key = escape_name(self.codec.keys[0])
            found = self._session.execute(f"SELECT {key} FROM {self._table} LIMIT 1")
            return found.one() is not None

    def missing(self) -> bool:
        with self._translated_errors():
            return not columns_of(self._session, self.sink.target)

    def prepare(self) -> None:
        with self._translated_errors():
            make_marks(self._session, self.sink.target)
            make_table(self._session, self.sink.target, self.codec)

    def rows(self) -> Iterator[tuple[str, str]]:
        with self._translated_errors():
            query = SimpleStatement(
                f"SELECT {_listed(self.codec.schema.names)} FROM {self._table}",
                fetch_size=FETCHED_ROWS,
            )
            makers = {one.name: from_cassandra(one.type) for one in self.codec.schema}
            for values in self._session.execute(query):
                row = self.codec.row(
                    {
                        name: None if value is None else makers[name](value)
                        for name, value in values.items()
                    }
                )
                yield self.codec.key_of(row), row

    def deliver(
        self, changes: Iterable[Change], *, before: Watermark | None, after: Watermark
    ) -> int:
        with self._translated_errors():
            stored = self._stored()
            if stored.watermark != before:
                raise SinkMovedError(self.sink.name)
            written_at = max(time.time_ns() // 1000, stored.written_at + 1)
            writes = self._writes(changes, written_at)
            if before is not None and before.epoch == after.epoch:
                # Check all values first: rejected ones can then be fixed in the table, so that the
                # next delivery does not have them.
                writes = iter([*writes])
            some = [*islice(writes, ROWS_AT_ONCE)]
            if some:
                stored = self._move(stored, underway(before, after), written_at)
            count = 0
            while some:
                execute_concurrent(
                    self._session, [(one, None) for one in some], concurrency=WRITES_AT_ONCE
                )
                count += len(some)
                some = [*islice(writes, ROWS_AT_ONCE)]
            failpoint("sink_delivered")
            self._move(stored, after, written_at)
            return count

    def close(self) -> None:
        cluster, self._cluster, self._opened = self._cluster, None, None
        self._prepared = {}
        if cluster is not None:
            cluster.shutdown()

    @property
    def _session(self) -> Session:
        if self._opened is None:
            self._cluster = cassandra_cluster(self.address)
            self._opened = self._cluster.connect()
        return self._opened

    @cached_property
    def _table(self) -> str:
        return table_name(self.sink.target)

    @cached_property
    def _marks(self) -> str:
        return marks_name(self.sink.target)

    def _statement(self, text: str) -> PreparedStatement:
        if text not in self._prepared:
            self._prepared[text] = self._session.prepare(text)
        return self._prepared[text]

    def _stored(self) -> _Mark:
        if not columns_of(self._session, f"{self.sink.target.partition('.')[0]}.{MARKS}"):
            return _Mark()
        query = self._statement(
            f"SELECT table_id, version, epoch, begun, written_at FROM {self._marks} WHERE sink = ?"
        ).bind([self.sink.name])
        # Completes a conditional write that is in progress.
        query.consistency_level = ConsistencyLevel.SERIAL
        found = self._session.execute(query).one()
        if found is None:
            return _Mark()
        written_at = found.pop("written_at")
        return _Mark(Watermark.stored(**found), written_at)

    def _move(self, stored: _Mark, watermark: Watermark, written_at: int) -> _Mark:
        """Store the watermark, unless it changed since it was read."""
        columns: tuple[Any, ...] = (*watermark.parts.values(), written_at, self.sink.name)
        if stored.watermark is None:
            text = (
                f"INSERT INTO {self._marks} (table_id, version, epoch, begun, written_at, sink, "
                "delivered_at) VALUES (?, ?, ?, ?, ?, ?, toTimestamp(now())) IF NOT EXISTS"
            )
        else:
            text = (
                f"UPDATE {self._marks} SET table_id = ?, version = ?, epoch = ?, begun = ?, "
                "written_at = ?, delivered_at = toTimestamp(now()) WHERE sink = ? "
                "IF written_at = ?"
            )
            columns = (*columns, stored.written_at)
        if not self._session.execute(self._statement(text).bind(columns)).was_applied:
            raise SinkMovedError(self.sink.name)
        return _Mark(watermark, written_at)

    def _writes(self, changes: Iterable[Change], written_at: int) -> Iterator[BoundStatement]:
        """The statements of the changes.

        Raises:
            SinkValueError: Cassandra does not accept a key.
        """
        names, keys = self.codec.schema.names, self.codec.keys
        makers = {one.name: to_cassandra(one.type) for one in self.codec.schema}
        upsert = self._statement(
            f"INSERT INTO {self._table} ({_listed(names)}) "
            f"VALUES ({', '.join('?' * len(names))}) USING TIMESTAMP ?"
        )
        same = " AND ".join(f"{escape_name(one)} = ?" for one in keys)
        delete = self._statement(f"DELETE FROM {self._table} USING TIMESTAMP ? WHERE {same}")
        for change in changes:
            values = json.loads(change.key if change.after is None else change.after)
            key = [values[one] for one in keys]
            if None in key or key == [""]:
                cause = f"Cassandra has no row whose key is NULL or empty: {change.key}"
                raise SinkValueError(self.sink.name, cause)
            row = {
                name: None if value is None else makers[name](value)
                for name, value in values.items()
            }
            if change.after is None:
                yield delete.bind([written_at, *(row[one] for one in keys)])
            else:
                yield upsert.bind([*(row[name] for name in names), written_at])

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """After a failure close the connections, and raise one of our errors."""
        name = self.sink.name
        try:
            yield
        except RequestValidationException as error:
            self.close()
            raise SinkValueError(name, str(error)) from error
        except (DriverException, NoHostAvailable, ConnectionException, ErrorMessage) as error:
            self.close()
            cause = f"{type(error).__name__}: {error}"
            raise SinkUnreachableError(name, "Cassandra", cause) from error
        except BaseException:
            self.close()
            raise


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(escape_name, names))

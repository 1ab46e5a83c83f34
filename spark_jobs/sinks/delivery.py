"""One sink follows one table: from its watermark to the newest version, or from nothing.

A delivery takes the versions up to some number together and nets their changes. Building compares
what the sink holds with the table, so that a build that was killed goes on where it was, and what
is no longer there is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.names import TableVersion
from spark_jobs.sinks.changes import Change, difference, net
from spark_jobs.sinks.errors import (
    SinkAddressMissingError,
    SinkClientMissingError,
    SinkGapError,
    SinkOccupiedError,
)
from spark_jobs.sinks.kafka import KafkaTarget
from spark_jobs.sinks.postgres import PostgresTarget
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.sinks.target import Addresses, Target, Watermark
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.locks import table_lock
from spark_jobs.storage import log
from spark_jobs.storage.errors import TableMissingError
from spark_jobs.storage.history import changes_between
from spark_jobs.storage.reader import Session, arrow_schema, changed_rows, table_rows

# Longer ranges are delivered in steps: their net change is held in memory.
VERSIONS_AT_ONCE = 100
LOCK_POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Delivered:
    """What a step did.

    Attributes:
        watermark: how far the sink has come with it.
        changes: keys whose rows changed.
        built: whether it was built from the table's current rows.
        behind: versions of the table that are still to be delivered.
    """

    watermark: Watermark
    changes: int
    built: bool
    behind: int


@dataclass
class Delivery:
    """The work on one sink.

    Attributes:
        location: of the table that it follows.
        addresses: tells them when they are needed: a system may come later than the sink.
        locks: where lock files lie; one process at a time works on a sink.
        spark: gives a session, for tables whose files are not their rows.
    """

    sink: SinkEntry
    location: str
    addresses: Callable[[], Addresses]
    locks: Path
    spark: Session
    _target: Target | None = field(default=None)
    _last: tuple[TableVersion, Delivered] | None = field(default=None)

    def step(self) -> Delivered:
        """Deliver what is missing, or a part of it.

        Raises:
            SinkRefusedError: a person must decide.
            TableLockedError: another process works on the sink.
            LakehouseError: what it needs is not there for now.
        """
        newest = self._newest()
        if self._last is not None and self._last[0] == newest:
            return self._last[1]
        with table_lock(self.locks, self._lock), self._letting_go():
            target = self.target(newest)
            mark = target.watermark()
            if mark is None and target.occupied():
                raise SinkOccupiedError(self.sink.name, self.sink.target)
            if mark is None or mark.building:
                done = self._build(target, mark, newest)
            else:
                done = self._follow(target, mark, newest)
        if not done.behind:
            self._last = newest, Delivered(done.watermark, 0, built=False, behind=0)
        return done

    def catch_up(self) -> Delivered:
        """Deliver until the sink holds the newest version; the changes of all steps are summed.

        Raises:
            SinkRefusedError: a person must decide.
            TableLockedError: another process works on the sink.
            LakehouseError: what it needs is not there for now.
        """
        done = self.step()
        while done.behind:
            more = self.step()
            done = replace(more, changes=done.changes + more.changes, built=done.built)
        return done

    def rebuild(self, *, wait_seconds: float = 60) -> Delivered:
        """Make the sink equal to the table as it is now, whatever either holds.

        Raises:
            TableLockedError: another process works on the sink all the time.
            LakehouseError: what it needs is not there for now.
        """
        with self.held(wait_seconds=wait_seconds), self._letting_go():
            newest = self._newest()
            target = self.target(newest)
            return self._build(target, target.watermark(), newest)

    @contextmanager
    def held(self, *, wait_seconds: float) -> Iterator[None]:
        """Hold the sink against other processes of this machine; they are waited for."""
        deadline = time.monotonic() + wait_seconds
        while True:
            try:
                with table_lock(self.locks, self._lock):
                    yield
                    return
            except TableLockedError as error:
                if error.table != self._lock or time.monotonic() > deadline:
                    raise
            time.sleep(LOCK_POLL_SECONDS)

    def target(self, version: TableVersion) -> Target:
        """The place, with the columns that the table has at a version.

        Raises:
            SinkAddressMissingError: nothing says where the system is.
        """
        schema = arrow_schema(self.location, version.version, self.sink.columns)
        if self._target is not None and self._target.codec.schema != schema:
            self.close()
        if self._target is None:
            codec = RowCodec(schema, self.sink.keys)
            self._target = open_target(self.sink, codec, self.addresses())
        return self._target

    def close(self) -> None:
        """Let go of every connection."""
        if self._target is not None:
            self._target.close()
            self._target = None
        self._last = None

    def rows_at(self, version: int) -> Iterator[tuple[str, str]]:
        """Key and row of every row of the table at a version; ``target`` comes first."""
        if self._target is None:
            return
        for batch in table_rows(self.location, version, self.sink.columns, spark=self.spark):
            yield from self._target.codec.rows(batch)

    @property
    def _lock(self) -> str:
        return f"sink.{self.sink.name}"

    def _newest(self) -> TableVersion:
        newest = log.table_version(self.location)
        if newest is None:
            raise TableMissingError(self.location)
        return newest

    def _build(self, target: Target, mark: Watermark | None, newest: TableVersion) -> Delivered:
        target.prepare()
        held = dict(target.rows())
        rows = self.rows_at(newest.version)
        reached = Watermark(newest.table_id, newest.version, mark.epoch + 1 if mark else 1)
        count = target.deliver(difference(self.sink.name, rows, held), before=mark, after=reached)
        failpoint("sink_recorded")
        return Delivered(reached, count, built=True, behind=0)

    def _follow(self, target: Target, mark: Watermark, newest: TableVersion) -> Delivered:
        if newest.table_id != mark.table_id:
            raise SinkGapError(self.sink.name, "the table was recreated")
        if newest.version < (mark.version if mark.begun is None else mark.begun):
            raise SinkGapError(self.sink.name, "the table lost versions that were delivered")
        if newest.version == mark.version:
            return Delivered(mark, 0, built=False, behind=0)
        upto = mark.begun or min(newest.version, mark.version + VERSIONS_AT_ONCE)
        found = changes_between(self.location, after=mark.version, upto=upto)
        if found.reshaped:
            raise SinkGapError(self.sink.name, "the table has other columns now")
        if not found.fed:
            reason = f"the changes after version {mark.version} are not all there any more"
            raise SinkGapError(self.sink.name, reason)
        if target.missing():
            raise SinkGapError(self.sink.name, f"{self.sink.target!r} is gone")
        changes: list[Change] = []
        if found.rows_changed:
            changes = net(self.sink.name, self._moves(target, mark.version, upto))
        reached = Watermark(mark.table_id, upto, mark.epoch)
        target.deliver(changes, before=mark, after=reached)
        failpoint("sink_recorded")
        return Delivered(reached, len(changes), built=False, behind=newest.version - upto)

    def _moves(self, target: Target, after: int, upto: int) -> Iterator[tuple[str, str, bool]]:
        found = changed_rows(
            self.location, self.sink.columns, after=after, upto=upto, spark=self.spark
        )
        for batch, came in found:
            for (key, row), one in zip(target.codec.rows(batch), came.to_pylist(), strict=True):
                yield key, row, one

    @contextmanager
    def _letting_go(self) -> Iterator[None]:
        """Open the place again after a failure: the table may have other columns by then."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def open_target(sink: SinkEntry, codec: RowCodec, addresses: Addresses) -> Target:
    """The place of a sink; nothing is asked of its system yet.

    Raises:
        SinkAddressMissingError: nothing says where the system is.
        SinkClientMissingError: the Python client of the system is not installed.
    """
    match sink.system:
        case SinkSystem.KAFKA if addresses.kafka:
            return KafkaTarget(sink, codec, addresses.kafka)
        case SinkSystem.POSTGRES if addresses.postgres:
            return PostgresTarget(sink, codec, addresses.postgres)
        case SinkSystem.REDIS if addresses.redis:
            with _optional_client(sink):
                from spark_jobs.sinks.redis import RedisTarget  # noqa: PLC0415 - an extra
            return RedisTarget(sink, codec, addresses.redis)
        case SinkSystem.CASSANDRA if addresses.cassandra:
            with _optional_client(sink):
                from spark_jobs.sinks.cassandra import CassandraTarget  # noqa: PLC0415 - an extra
            return CassandraTarget(sink, codec, addresses.cassandra)
    raise SinkAddressMissingError(sink.name, sink.system.value)


@contextmanager
def _optional_client(sink: SinkEntry) -> Iterator[None]:
    """Name the extra that installs a missing client; `pyproject.toml` lists the extras."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != sink.system.value:
            raise
        raise SinkClientMissingError(sink.name, sink.system.value) from error

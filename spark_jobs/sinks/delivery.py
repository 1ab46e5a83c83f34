"""Delivers a table to a sink: from the sink's watermark to the newest version, or from scratch.

A delivery nets the changes of several versions. A build compares the sink's content with the table
and delivers the difference, so that a killed build resumes and old rows are deleted.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa

from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.graph.manifest import SinkEntry
from spark_jobs.names import TableVersion
from spark_jobs.sinks.changes import Change, difference, net
from spark_jobs.sinks.errors import (
    SinkAddressMissingError,
    SinkClientMissingError,
    SinkColumnsMissingError,
    SinkGapError,
    SinkOccupiedError,
    SinkValueError,
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

# Longer ranges are delivered in steps, because the net change is held in memory.
VERSIONS_AT_ONCE = 100
LOCK_POLL_SECONDS = 0.2
# Reasons why a sink cannot continue.
OTHER_COLUMNS: Final = "the table has other columns now"
OTHER_FORM: Final = "its target, format or keys changed"


@dataclass(frozen=True)
class Delivered:
    """The result of a step.

    Attributes:
        watermark: the sink's watermark after it.
        changes: number of keys whose rows changed.
        built: whether the sink was built from the table's current rows.
        behind: versions of the table that are not delivered yet.
    """

    watermark: Watermark
    changes: int
    built: bool
    behind: int


@dataclass
class Delivery:
    """Delivers one sink.

    Attributes:
        location: location of the table.
        addresses: returns the systems' addresses; called when needed, because a system may start
            later.
        locks: directory of lock files; one process at a time works on a sink.
        spark: opens a session, for tables that are not plain.
    """

    sink: SinkEntry
    location: str
    addresses: Callable[[], Addresses]
    locks: Path
    spark: Session
    _target: Target | None = field(default=None)
    _last: tuple[TableVersion, Delivered] | None = field(default=None)

    def step(self) -> Delivered:
        """Deliver the missing versions, or some of them.

        Raises:
            SinkRefusedError: a person must decide.
            TableLockedError: another process works on the sink.
            LakehouseError: something that it needs is currently missing.
        """
        newest = self._newest()
        if self._last is not None and self._last[0] == newest:
            return self._last[1]
        with table_lock(self.locks, self._lock), self._reopening():
            target = self.target(newest)
            mark = target.watermark()
            new = mark is None or not self.fits(mark)
            if new and target.occupied():
                if mark is not None:
                    raise SinkGapError(self.sink.name, OTHER_FORM)
                raise SinkOccupiedError(self.sink.name, self.sink.target)
            if mark is None or new or mark.building:
                done = self._build(target, mark, newest)
            else:
                done = self._follow(target, mark, newest)
        if not done.behind:
            self._last = newest, Delivered(done.watermark, 0, built=False, behind=0)
        return done

    def catch_up(self) -> Delivered:
        """Deliver up to the newest version; returns the sum of all steps.

        Raises:
            SinkRefusedError: a person must decide.
            TableLockedError: another process works on the sink.
            LakehouseError: something that it needs is currently missing.
        """
        done = self.step()
        while done.behind:
            more = self.step()
            done = replace(more, changes=done.changes + more.changes, built=done.built)
        return done

    def rebuild(self, *, wait_seconds: float = 60) -> Delivered:
        """Make the sink equal to the current table, whatever it contains.

        Raises:
            TableLockedError: another process works on the sink until the timeout.
            LakehouseError: something that it needs is currently missing.
        """
        with self.held(wait_seconds=wait_seconds), self._reopening():
            newest = self._newest()
            target = self.target(newest)
            return self._build(target, target.watermark(), newest)

    @contextmanager
    def held(self, *, wait_seconds: float) -> Iterator[None]:
        """Hold the sink's lock on this machine; waits for it."""
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
        """The target, with the table's columns at a version.

        Raises:
            SinkAddressMissingError: no setting has the system's address.
            SinkColumnsMissingError: the table has not all columns of the sink at that version.
        """
        schema = self._columns(version.version)
        if self._target is not None and self._target.codec.schema != schema:
            self.close()
        if self._target is None:
            unsigned = self.sink.system is SinkSystem.POSTGRES
            codec = RowCodec(schema, self.sink.keys, unsigned=unsigned)
            self._target = open_target(self.sink, codec, self.addresses())
        return self._target

    def close(self) -> None:
        """Close all connections."""
        if self._target is not None:
            self._target.close()
            self._target = None
        self._last = None

    def rows_at(self, version: int) -> Iterator[tuple[str, str]]:
        """Key and row of all rows at a version, as text; call ``target`` first.

        Raises:
            TableMissingError: the table does not exist.
            LogUnreadableError: the version is no longer readable.
        """
        if self._target is None:
            return
        for batch in table_rows(self.location, version, self.sink.columns, spark=self.spark):
            yield from self._texts(self._target, batch)

    def fits(self, mark: Watermark) -> bool:
        """Whether the sink was delivered by the keys, in the format and to the target of now."""
        return mark.form in {"", self._form}

    @cached_property
    def _form(self) -> str:
        parts = [self.sink.target, self.sink.format, *self.sink.keys]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def _columns(self, version: int) -> pa.Schema:
        held = {one.name for one in log.schema(self.location, version)}
        missing = [one for one in self.sink.columns if one not in held]
        if missing:
            raise SinkColumnsMissingError(self.sink.name, self.sink.table, missing)
        return arrow_schema(self.location, version, self.sink.columns)

    def _has_columns(self, version: int, schema: pa.Schema) -> bool:
        """Whether the sink's columns have these types at a version."""
        try:
            return bool(self._columns(version) == schema)
        except SinkColumnsMissingError:
            return False

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
        epoch = mark.epoch + 1 if mark else 1
        reached = Watermark(newest.table_id, newest.version, epoch, form=self._form)
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
            raise SinkGapError(self.sink.name, OTHER_COLUMNS)
        if not found.fed:
            reason = f"the changes after version {mark.version} are not all there any more"
            raise SinkGapError(self.sink.name, reason)
        if not self._has_columns(upto, target.codec.schema):
            # They change after these versions.
            raise SinkGapError(self.sink.name, OTHER_COLUMNS)
        if target.missing():
            raise SinkGapError(self.sink.name, f"{self.sink.target!r} is gone")
        changes: list[Change] = []
        if found.rows_changed:
            changes = net(self.sink.name, self._moves(target, mark.version, upto))
        reached = Watermark(mark.table_id, upto, mark.epoch, form=self._form)
        target.deliver(changes, before=mark, after=reached)
        failpoint("sink_recorded")
        return Delivered(reached, len(changes), built=False, behind=newest.version - upto)

    def _moves(self, target: Target, after: int, upto: int) -> Iterator[tuple[str, str, bool]]:
        found = changed_rows(
            self.location, self.sink.columns, after=after, upto=upto, spark=self.spark
        )
        for batch, came in found:
            for (key, row), one in zip(self._texts(target, batch), came.to_pylist(), strict=True):
                yield key, row, one

    def _texts(self, target: Target, batch: pa.RecordBatch) -> Iterator[tuple[str, str]]:
        try:
            yield from target.codec.rows(batch)
        except OverflowError as error:
            cause = "a time is outside of the years 1 to 9999"
            raise SinkValueError(self.sink.name, cause) from error

    @contextmanager
    def _reopening(self) -> Iterator[None]:
        """Reopen the target after a failure: the table's columns may have changed."""
        try:
            yield
        except BaseException:
            self.close()
            raise


def open_target(sink: SinkEntry, codec: RowCodec, addresses: Addresses) -> Target:
    """The target of a sink; does not connect yet.

    Raises:
        SinkAddressMissingError: no setting has the system's address.
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

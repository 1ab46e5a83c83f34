"""Deletes the expired rows of a silver table, in one commit.

A table of current rows first stores their keys as tombstones, so that a late older change does not
bring a row back. Expired events count as ignored from then on. A killed run is finished by the next
one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import ApplyMode, Expiry
from spark_jobs.silver.parse.expiry import expired_sql, horizon
from spark_jobs.silver.repair.pause import PausedStream
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.log import existing_table, table_version, transaction_version
from spark_jobs.storage.reader import read, read_columns
from spark_jobs.storage.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Expired:
    """The expired rows of a table.

    Attributes:
        table: its name in SQL.
        before: rows with an earlier time have expired.
        rows: number of expired rows.
        version: the commit that deleted them; None if nothing was written.
        why: why they still exist; empty if they were deleted, or in a dry run.
    """

    table: str
    before: datetime
    rows: int
    version: int | None = None
    why: str = ""


def expired_rows(tables: SilverTables, expiry: Expiry, *, now: datetime) -> Expired:
    """Count the expired rows of a table, without Spark; writes nothing."""
    before = horizon(expiry, now)
    name = str(tables.entry.table_name)
    if table_version(tables.table) is None:
        return Expired(table=name, before=before, rows=0)
    bound = pa.scalar(before).cast(_arrow_type(tables, expiry))
    found = read_columns(tables.table, [expiry.column], where=pc.field(expiry.column) < bound)
    return Expired(table=name, before=before, rows=found.num_rows)


def _arrow_type(tables: SilverTables, expiry: Expiry) -> pa.DataType:
    types = {"date": pa.date32(), "timestamp_ntz": pa.timestamp("us")}
    return types.get(_kind(tables, expiry), pa.timestamp("us", "UTC"))


def _kind(tables: SilverTables, expiry: Expiry) -> str:
    return next(one.type for one in tables.entry.columns if one.name == expiry.column)


def delete_expired(
    spark: SparkSession, tables: SilverTables, expiry: Expiry, *, txn: Txn, before: datetime
) -> int | None:
    """Delete the rows before a time; the caller holds the table's guard.

    Returns:
        the version of the commit; None if there was no such row.

    Raises:
        TableMovedError: another writer committed tombstones at the same time.
    """
    condition = expired_sql(expiry, _kind(tables, expiry), before=before)
    expired = read(spark, tables.table).where(condition)
    if expired.isEmpty():
        return None
    if tables.entry.apply is ApplyMode.UPSERT:
        names = [column.name for column in tables.tombstone_columns]
        writer.append(Rows.of(expired.select(*names)), tables.tombstones, txn=txn)
    failpoint("expiry.after_tombstones")
    said: Mapping[str, Any] = {"expiry": {"before": before.isoformat()}}
    writer.delete(spark, tables.table, condition, txn=txn, metadata=said)
    return existing_table(tables.table).version()


@dataclass(frozen=True)
class Expirer:
    """Deletes expired rows of one silver table, next to its running stream."""

    spark: SparkSession
    stream: PausedStream
    expiry: Expiry

    def run(self, *, now: datetime) -> Expired:
        """Delete the rows that have expired by now.

        Raises:
            UnsettledError: the table's stream was killed during a batch.
        """
        with self.stream.between_batches():
            found = expired_rows(self._tables, self.expiry, now=now)
            if not found.rows:
                return found
            txn = Txn(f"expiry/{self._tables.entry.name}", self._number())
            # Before the commit: after a kill in between, the next run has the same number, and its
            # count replaces this one.
            if self._tables.entry.apply is ApplyMode.APPEND:
                self._count(found.rows, txn.version)
            failpoint("expiry.after_count")
            version = delete_expired(
                self.spark, self._tables, self.expiry, txn=txn, before=found.before
            )
        return Expired(table=found.table, before=found.before, rows=found.rows, version=version)

    @property
    def _tables(self) -> SilverTables:
        return self.stream.live.tables

    def _number(self) -> int:
        app = f"expiry/{self._tables.entry.name}"
        numbers = (transaction_version(place, app) for place in self._tables.places)
        return 1 + max((number for number in numbers if number is not None), default=0)

    def _count(self, rows: int, number: int) -> None:
        """Count expired events as ignored, under a batch id that no stream uses."""
        live = self.stream.live
        batch = SilverBatch(
            silver=live.entry.name,
            epoch=live.epoch,
            batch_id=-number,
            records=0,
            applied=-rows,
            ignored=rows,
            at=live.clock(),
        )
        self.stream.store.record_silver_batch(batch)

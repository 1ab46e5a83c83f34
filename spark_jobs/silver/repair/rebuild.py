"""Rebuild: recreates a silver table from bronze next to the live one, and applies the difference.

The stream runs while the table is built. Then the table's guard is held from the comparison to the
last commit. Only differences at that moment are written, so that a killed rebuild is finished by
the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.last_step import MergeByKey
from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.apply.net_change import NetChange
from spark_jobs.silver.errors import BronzeIncompleteError, OvertakenError
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.parse.typed import SEQUENCE
from spark_jobs.silver.repair.comparison import LiveTable, Rebuilt, TableDifference
from spark_jobs.silver.repair.complete import missing_records
from spark_jobs.silver.repair.pause import PausedStream
from spark_jobs.silver.repair.shadow import ShadowTable, came_after
from spark_jobs.silver.store.releases import corrected, releases, reprocessing_app
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import SilverBatch, SilverTotals
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.history import discard_table, remove_table
from spark_jobs.storage.log import existing_table, table_version
from spark_jobs.storage.reader import read
from spark_jobs.storage.rows import RowChange, Rows


@dataclass(frozen=True)
class Rebuilder:
    """Rebuilds one silver table; only one rebuild at a time may use its folder.

    Attributes:
        stream: pauses the table's stream; applies batches by the current declarations.
        source: the source's declaration to rebuild by.
        entry: the table's declaration to rebuild by.
        bronze: location of the source's records.
        folder: where the table is built; contains nothing else.
    """

    spark: SparkSession
    stream: PausedStream
    source: SourceEntry
    entry: SilverEntry
    bronze: str
    folder: str

    def preview(self) -> Rebuilt:
        """Compare the table with its rebuilt copy; changes nothing in the table.

        Raises:
            LakehouseError: any error of ``run``.
        """
        with self.beside() as (live, shadow):
            return TableDifference.of(live, shadow).report

    @contextmanager
    def beside(self) -> Iterator[tuple[LiveTable, ShadowTable]]:
        """The table and its rebuilt copy, both as of the same records; changes nothing.

        Raises:
            LakehouseError: any error of ``run``.
        """
        with self._built() as shadow:
            with self.stream.between_batches() as version:
                self._check(shadow)
                live = self._now()
            # The stream continues meanwhile.
            shadow.apply_up_to(version)
            shadow.expire()
            yield live, shadow

    def run(self, *, by: str, reason: str) -> Rebuilt:
        """Apply the difference, with one commit for the table's rows.

        Args:
            by: the person who asks; stored with the commit.
            reason: why; stored with the commit.

        Raises:
            BronzeIncompleteError: bronze lacks records that the table was built from.
            UnsettledError: a batch of the stream was killed and is not finished.
            OvertakenError: records were reprocessed meanwhile.
        """
        with self._built() as shadow, self.stream.between_batches() as version:
            self._check(shadow)
            shadow.apply_up_to(version)
            shadow.expire()
            found = TableDifference.of(self._now(), shadow)
            note = {"rebuild": {"by": by, "reason": reason, "bronze_version": version}}
            return found.report if found.report.right else self._write(found, note)

    def drop_tombstones(self, places: DataFrame, note: Mapping[str, Any]) -> None:
        """Delete the tombstones of some records, in one commit; their keys go with them.

        A rebuild keeps those before a truncation, as it cannot know which of them are still due.

        Args:
            places: coordinates of the records.
            note: user metadata of the commit.
        """
        entry, location = self.live.entry, self.tables.tombstones
        if entry.apply is not ApplyMode.UPSERT:
            return
        with self.stream.between_batches():
            held, own = read(self.spark, location), sf.broadcast(places.toDF(*COORDINATES))
            gone = held.join(own, list(COORDINATES), "left_semi").select(*held.columns)
            gone = gone.localCheckpoint(eager=False)
            if gone.isEmpty():
                return
            change = NetChange(gone, gone.limit(0), (*entry.keys, SEQUENCE))
            txn = Txn(reprocessing_app(entry), self.tables.next_number())
            self._change(change, location, txn, note)

    @property
    def live(self) -> BatchApplier:
        """Applies the stream's batches."""
        return self.stream.live

    @property
    def tables(self) -> SilverTables:
        """The live table and its helper tables."""
        return self.live.tables

    @contextmanager
    def _built(self) -> Iterator[ShadowTable]:
        """The rebuilt table, with the records that the live table has applied at the start."""
        name = self.live.entry.name
        with self.stream.between_batches() as version:
            decided = table_version(self.tables.releases)
            # Not by time travel to that version: it may still have records that bronze lost since.
            later = came_after(self.spark, self.bronze, version)
            records = read(self.spark, self.bronze).where(~later)
            counted = self._totals().records
            lost = missing_records(self.spark, self.tables, records, counted=counted)
        if lost:
            raise BronzeIncompleteError(name, str(self.live.source.table_name), lost)
        remove_table(self.folder)
        try:
            shadow = ShadowTable(
                spark=self.spark,
                source=self.source,
                entry=self.entry,
                bronze=self.bronze,
                live=self.tables,
                tables=replace(self.tables.below(self.folder), entry=self.entry),
                max_bytes=self.live.max_bytes,
                placeholder=self.live.placeholder,
                decided=decided,
                began=self.live.clock(),
                few=self.live.few,
            )
            shadow.apply_up_to(version)
            failpoint("rebuild.built")
            yield shadow
        finally:
            discard_table(self.folder)

    def _check(self, shadow: ShadowTable) -> None:
        if table_version(self.tables.releases) != shadow.decided:
            raise OvertakenError(self.live.entry.name)

    def _now(self) -> LiveTable:
        return LiveTable.now(self.spark, self.tables, self._totals())

    def _totals(self) -> SilverTotals:
        name, epoch = self.live.entry.name, self.live.epoch
        totals = self.stream.store.silver_totals(name, epoch=epoch)
        return corrected(totals, releases(self.tables.releases), epoch=epoch)

    def _write(self, found: TableDifference, note: Mapping[str, Any]) -> Rebuilt:
        """Write the difference in the order of a batch: rows last."""
        report, tables = found.report, self.tables
        txn = Txn(reprocessing_app(self.live.entry), tables.next_number())
        if report.rejected:
            writer.append(Rows.of(found.rejected), tables.quarantine, txn=txn)
        failpoint("rebuild.after_quarantine")
        if found.remembered is not None and (report.remembered or report.reshaped):
            self._change(found.remembered, tables.places[-1], txn, note)
        failpoint("rebuild.after_remembered")
        changed = bool(report.leave or report.enter or report.reshaped)
        if changed:
            self._change(found.rows, tables.table, txn, note)
            tables.cluster(self.spark)
        failpoint("rebuild.after_table")
        if report.miscounted:
            self._count(found)
        version = existing_table(tables.table).version() if changed else None
        return replace(report, version=version)

    def _change(self, change: NetChange, place: str, txn: Txn, note: Mapping[str, Any]) -> None:
        if not change.identity:
            writer.replace(Rows.of(change.inserted), place, txn=txn, metadata=note)
            return
        inserted = change.inserted.select(*change.deleted.columns)
        rows = RowChange(
            deleted=Rows.of(change.deleted.dropDuplicates(list(change.identity))),
            inserted=Rows.of(inserted),
            deletes=None,
            inserts=None,
            kinds=dict(inserted.dtypes),
            step=MergeByKey(change.identity),
        )
        writer.change(rows, place, seen=table_version(place), txn=txn, metadata=note)

    def _count(self, found: TableDifference) -> None:
        """Record missing counts under a batch id that no stream uses."""
        now = self.live.clock()
        batch = SilverBatch(
            silver=self.live.entry.name,
            epoch=self.live.epoch,
            batch_id=-round(now.timestamp() * 1000),
            at=now,
            outcome=None,
            verdict=None,
            **found.gained,
        )
        self.stream.store.record_silver_batch(batch)

"""Rebuild: a silver table made of bronze anew beside the live one, and put right by what differs.

The stream goes on while the table is built. For the rest whoever writes holds the table's guard,
so nothing moves between the comparison and the commits. They write what differs at that moment,
so a rebuild that was cut off anywhere is finished by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.silver.batch import BatchApplier
from spark_jobs.silver.beside import BesideTable, came_after
from spark_jobs.silver.complete import missing_records
from spark_jobs.silver.errors import BronzeIncompleteError, OvertakenError, UnsettledError
from spark_jobs.silver.guard import POLL_SECONDS, Guard
from spark_jobs.silver.net_change import NetChange
from spark_jobs.silver.rebuilt import LiveTable, Rebuilt, TableDifference
from spark_jobs.silver.releases import corrected, readmission_app, releases
from spark_jobs.silver.tables import SilverTables
from spark_jobs.silver.taken_up import taken_up
from spark_jobs.state.batches import SilverBatch, SilverTotals
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.history import remove_table
from spark_jobs.storage.log import existing_table, table_version
from spark_jobs.storage.tables import Txn, append, merge_rows, overwrite, read

# How long a batch may need that is on its way when the table is to stand still.
SETTLED_SECONDS = 60.0


@dataclass(frozen=True)
class Rebuilder:
    """Rebuilds one silver table; one rebuild at a time may use its folder.

    Attributes:
        live: applies the stream's batches, by the declarations as they are now.
        store: holds the counts of the batches.
        bronze: where the source's records lie.
        checkpoint: of the table's stream.
        folder: where the table is built; nothing else is in it.
        guard: keeps other writers of the table out.
        patience: seconds to wait for a batch that is on its way.
    """

    spark: SparkSession
    live: BatchApplier
    store: ControlStore
    bronze: str
    checkpoint: str
    folder: str
    guard: Guard
    patience: float = SETTLED_SECONDS

    def preview(self) -> Rebuilt:
        """How the table differs from what its records make; nothing of it is written.

        Raises:
            LakehouseError: any condition of ``run``.
        """
        with self._built() as beside:
            with self._standing() as version:
                self._check(beside)
                live = self._now()
            # The stream goes on while this is compared.
            beside.take_up(version)
            return TableDifference.of(live, beside).report

    def run(self, *, by: str, reason: str) -> Rebuilt:
        """Put the table right, its rows by one commit of those that differ.

        Args:
            by: who asks; is kept with the commit.
            reason: why; is kept with the commit.

        Raises:
            BronzeIncompleteError: bronze lacks records that the table was made of.
            UnsettledError: a batch of the stream was cut off and is not finished.
            OvertakenError: records were readmitted meanwhile.
        """
        with self._built() as beside, self._standing() as version:
            self._check(beside)
            beside.take_up(version)
            found = TableDifference.of(self._now(), beside)
            note = {"by": by, "reason": reason, "bronze_version": version}
            return found.report if found.report.right else self._write(found, note)

    @property
    def tables(self) -> SilverTables:
        """The live table's parts."""
        return self.live.tables

    @contextmanager
    def _built(self) -> Iterator[BesideTable]:
        """The table beside the live one, with what that one holds when this begins."""
        name = self.live.entry.name
        with self._standing() as version:
            decided = table_version(self.tables.releases)
            # What bronze lacks now can be there at that version yet, until its files are cleaned.
            later = came_after(self.spark, self.bronze, version)
            records = read(self.spark, self.bronze).where(~later)
            counted = self._totals().records
            lost = missing_records(self.spark, self.tables, records, counted=counted)
        if lost:
            raise BronzeIncompleteError(name, str(self.live.source.table_name), lost)
        remove_table(self.folder)
        try:
            beside = BesideTable(
                spark=self.spark,
                source=self.live.source,
                entry=self.live.entry,
                bronze=self.bronze,
                live=self.tables,
                tables=self.tables.beside(self.folder),
                max_bytes=self.live.max_bytes,
                decided=decided,
            )
            beside.take_up(version)
            failpoint("rebuild.built")
            yield beside
        finally:
            remove_table(self.folder)

    @contextmanager
    def _standing(self) -> Iterator[int]:
        """Hold the table's guard between two batches; yields the version of bronze that it holds.

        Raises:
            UnsettledError: there is no such moment.
        """
        deadline = time.monotonic() + self.patience
        while True:
            with self.guard():
                version = taken_up(
                    self.tables, self.checkpoint, app_id=self.live.app, recorded=self._recorded
                )
                if version is not None:
                    yield version
                    return
            if time.monotonic() > deadline:
                raise UnsettledError(self.live.entry.name)
            time.sleep(POLL_SECONDS)

    def _recorded(self, batch_id: int) -> bool:
        name, epoch = self.live.entry.name, self.live.epoch
        return self.store.silver_batch_recorded(name, epoch=epoch, batch_id=batch_id)

    def _check(self, beside: BesideTable) -> None:
        if table_version(self.tables.releases) != beside.decided:
            raise OvertakenError(self.live.entry.name)

    def _now(self) -> LiveTable:
        return LiveTable.now(self.spark, self.tables, self._totals())

    def _totals(self) -> SilverTotals:
        name, epoch = self.live.entry.name, self.live.epoch
        totals = self.store.silver_totals(name, epoch=epoch)
        return corrected(totals, releases(self.tables.releases), epoch=epoch)

    def _write(self, found: TableDifference, note: dict[str, Any]) -> Rebuilt:
        """Write what differs, in the order of a batch: the rows after what they rest on."""
        report, tables = found.report, self.tables
        txn = Txn(readmission_app(self.live.entry), tables.next_number())
        if report.rejected:
            append(found.rejected, tables.quarantine, txn=txn)
        failpoint("rebuild.after_quarantine")
        if found.remembered is not None and (report.remembered or report.reshaped):
            self._change(found.remembered, tables.places[-1], txn, note)
        failpoint("rebuild.after_remembered")
        changed = bool(report.leave or report.enter or report.reshaped)
        if changed:
            self._change(found.rows, tables.table, txn, note)
        failpoint("rebuild.after_table")
        if report.miscounted:
            self._count(found)
        version = existing_table(tables.table).version() if changed else None
        return replace(report, version=version)

    def _change(self, change: NetChange, place: str, txn: Txn, note: dict[str, Any]) -> None:
        metadata = {"rebuild": note}
        if not change.identity:
            overwrite(change.entering, place, txn=txn, metadata=metadata)
            return
        merge_rows(
            self.spark,
            place,
            leaving=change.leaving.dropDuplicates(list(change.identity)),
            entering=change.entering.select(*change.leaving.columns),
            key=change.identity,
            txn=txn,
            metadata=metadata,
        )

    def _count(self, found: TableDifference) -> None:
        """Record what the counts lack, as a batch that no stream can have."""
        now = self.live.clock()
        batch = SilverBatch(
            silver=self.live.entry.name,
            epoch=self.live.epoch,
            batch_id=-round(now.timestamp() * 1000),
            at=now,
            **found.gained,
        )
        self.store.record_silver_batch(batch)

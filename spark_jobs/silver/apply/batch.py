"""One micro-batch of a silver table: rejected records aside, the rest applied, all counted.

Each write carries the batch's transaction id, so a batch that is run again does what is still to
do; the counts are recorded last and replace themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_jobs.access.secrets import DEBEZIUM_PLACEHOLDER
from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.projection import Projection, split_projection
from spark_jobs.names import Disposition
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.silver.apply.current_rows import CurrentRows
from spark_jobs.silver.apply.drift_watch import DriftWatch
from spark_jobs.silver.apply.event_rows import EventRows
from spark_jobs.silver.apply.outcome import HeldTables, Outcome
from spark_jobs.silver.apply.scd2_rows import Scd2Rows
from spark_jobs.silver.check.progress import first_part_app, first_part_written
from spark_jobs.silver.frontier import Cut, TableFrontier, position, positions_of, reached_by
from spark_jobs.silver.parse.documents import PROBLEM, RAW_COLUMNS
from spark_jobs.silver.parse.prepared import prepared
from spark_jobs.silver.parse.rows import COORDINATES, silver_rows
from spark_jobs.silver.parse.typed import typed_records
from spark_jobs.silver.parse.unavailable import Carried
from spark_jobs.silver.store.releases import unsettled
from spark_jobs.silver.store.tables import QUARANTINE_COLUMNS, SilverTables
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.log import table_version
from spark_jobs.storage.reader import read_by_delta
from spark_jobs.storage.rows import Rows
from spark_jobs.storage.writer import Joining


def transaction_app(entry: SilverEntry, epoch: int) -> str:
    """The application id of every write to a silver table in an epoch."""
    return f"silver/{entry.name}/{epoch}"


@dataclass(frozen=True)
class BatchApplier:
    """Applies batches of bronze records to one silver table.

    Attributes:
        epoch: part of the transaction ids; see ``state.epochs``.
        max_bytes: a longer record is quarantined.
        record: takes the counts of a batch that is done.
        clock: tells the time.
        held: reads the tables that records are compared with.
        ended: the batches that this applier has ended.
        placeholder: what stands for a value that the database did not send.
        maintenance: when the small files of the tables are joined.
        watch: compares what arrives with the declaration; None where nobody does.
        frontier: where batches are cut; None where they are applied as they come.
    """

    source: SourceEntry
    entry: SilverEntry
    tables: SilverTables
    epoch: int
    max_bytes: int
    record: Callable[[SilverBatch], None]
    clock: Callable[[], datetime]
    held: HeldTables = field(default_factory=HeldTables)
    ended: set[int] = field(default_factory=set)
    placeholder: str = DEBEZIUM_PLACEHOLDER
    maintenance: MaintenanceSettings = field(default_factory=MaintenanceSettings)
    watch: DriftWatch | None = None
    frontier: TableFrontier | None = None

    def apply(self, bronze: DataFrame, batch_id: int) -> SilverBatch | None:
        """Apply one batch; returns its counts, or None where it had no records.

        Raises:
            SchemaDriftError: its records are not as declared, and nothing was written.
        """
        # A stream begins with the empty table that it found.
        if not bronze.rdd.getNumPartitions():
            return None
        records, settled = self._unsettled(bronze)
        rows = self._kept_rows(records)
        before: dict[Disposition, int] = {}
        target = self._cut_at(rows, batch_id)
        if target is not None and self.frontier is not None:
            first = rows.where(position() < target)
            before = self._write_first_part(self._looked_at(first), batch_id)
            self._note_cut(self.frontier, target, batch_id)
            rows = rows.where(sf.coalesce(position() >= target, sf.lit(True)))  # noqa: FBT003
        return self.write(self._looked_at(rows), batch_id, settled=settled, before=before)

    def judged(self, bronze: DataFrame) -> Outcome:
        """What becomes of each record, by the declarations and the tables as they are now."""
        return self.writer.outcome(self._kept_rows(bronze))

    def _kept_rows(self, bronze: DataFrame) -> DataFrame:
        # Each step is kept with its plan cut off: what follows reads it several times, and
        # planning costs more than the rows of a small batch. The first job that reads a step
        # computes it, so keeping it takes no job of its own.
        return self._rows(bronze).localCheckpoint(eager=False)

    def _looked_at(self, rows: DataFrame) -> Outcome:
        outcome = self.writer.outcome(rows)
        if self.watch is not None:
            self.watch.look(outcome)
        return outcome

    def _cut_at(self, rows: DataFrame, batch_id: int) -> int | None:
        """The commit position at which this batch is cut; None where it is applied as one."""
        frontier = self.frontier
        if frontier is None or frontier.target is None:
            return None
        found = positions_of(rows)
        if found is None:
            return None
        lowest, highest = found
        before, target = frontier.advance(highest, lambda: reached_by(self.tables))
        if target is None or not before < target <= highest:
            return None
        if not self.ended and first_part_written(self.tables, self.app) == batch_id:
            # It was cut before a kill, maybe elsewhere: what was written stays, and the rest is
            # whatever is not.
            return None
        if lowest < target:
            return target
        self._note_cut(frontier, target, batch_id)
        return None

    def _write_first_part(self, outcome: Outcome, batch_id: int) -> dict[Disposition, int]:
        """Write what comes before a cut; returns the counts."""
        counts = outcome.counts
        self._write_parts(outcome, counts, Txn(first_part_app(self.app), batch_id))
        failpoint("silver.between_parts")
        return counts

    def _note_cut(self, frontier: TableFrontier, target: int, batch_id: int) -> None:
        """Say that the table has, as it is now, all changes up to a position and none after."""
        version = table_version(self.tables.table)
        if version is not None:
            frontier.cuts.append(Cut(target, version, batch_id))

    @property
    def app(self) -> str:
        """The application id of every write."""
        return transaction_app(self.entry, self.epoch)

    @cached_property
    def projection(self) -> Projection:
        """The table's SELECT, taken apart once."""
        return split_projection(self.entry.projection)

    def _unsettled(self, bronze: DataFrame) -> tuple[DataFrame, int]:
        """The records that this batch must judge, and how many were rejected before.

        Only records that are read again can have been: those of a batch that runs again, which is
        the first of a run, and those of an epoch that reads bronze again.
        """
        if self.epoch == 1 and self.ended:
            return bronze, 0
        spark = bronze.sparkSession
        rejected = self.held.read(spark, self.tables.quarantine)
        known = table_version(self.tables.releases) is not None
        released = read_by_delta(spark, self.tables.releases) if known else None
        return unsettled(bronze, released, rejected, epoch=self.epoch)

    @cached_property
    def _rows(self) -> Callable[[DataFrame], DataFrame]:
        """Bronze records to rows of this table."""

        def to_silver_rows(bronze: DataFrame) -> DataFrame:
            typed = typed_records(
                bronze, self.source, max_bytes=self.max_bytes, placeholder=self.placeholder
            )
            return silver_rows(typed, self.source, self.entry, projection=self.projection)

        return prepared(to_silver_rows)

    @cached_property
    def writer(self) -> EventRows | CurrentRows | Scd2Rows:
        """What applies rows to this kind of table."""
        joining = Joining(self.maintenance)
        match self.entry.apply:
            case ApplyMode.APPEND:
                return EventRows(self.tables, self.held, self.clock, joining)
            case ApplyMode.UPSERT:
                return CurrentRows(self.tables, self.held, self._carried.names, joining)
            case ApplyMode.HISTORY:
                return Scd2Rows(self.tables, self.held, self._carried.names)

    @property
    def _carried(self) -> Carried:
        return Carried.of(self.source, self.entry, self.projection)

    def write(
        self,
        outcome: Outcome,
        batch_id: int,
        *,
        settled: int = 0,
        before: Mapping[Disposition, int] | None = None,
    ) -> SilverBatch | None:
        """Write what was judged, and record the counts; None where there is nothing.

        Args:
            outcome: what ``judged`` gave.
            batch_id: the number of the transaction.
            settled: records that are not judged again because they were rejected before.
            before: the counts of the part that was written before a cut.
        """
        if not outcome.groups and not settled and not before:
            return None
        counts = outcome.counts
        self._write_parts(outcome, counts, Txn(self.app, batch_id))
        counts[Disposition.QUARANTINED] += settled
        for disposition, count in (before or {}).items():
            counts[disposition] += count
        failpoint("silver.after_apply")
        batch = SilverBatch(
            silver=self.entry.name,
            epoch=self.epoch,
            batch_id=batch_id,
            records=sum(counts.values()),
            at=self.clock(),
            **{str(disposition): count for disposition, count in counts.items()},
        )
        self.record(batch)
        self.ended.add(batch_id)
        failpoint("silver.after_record")
        return batch

    def _write_parts(self, outcome: Outcome, counts: Mapping[Disposition, int], txn: Txn) -> None:
        failpoint("silver.before_quarantine")
        if counts[Disposition.QUARANTINED]:
            self._quarantine(outcome.having(Disposition.QUARANTINED), txn)
        failpoint("silver.after_quarantine")
        self.writer.write(outcome, txn)

    def _quarantine(self, rejected: DataFrame, txn: Txn) -> None:
        if self.epoch > 1:
            # A new epoch reads bronze again, and what it rejects may be here already.
            held = read_by_delta(rejected.sparkSession, self.tables.quarantine).select(
                sf.col("partition").alias(COORDINATES[0]), sf.col("offset").alias(COORDINATES[1])
            )
            rejected = rejected.join(held, list(COORDINATES), "left_anti")
        raw = rejected.select(
            *(sf.col(new).alias(old) for old, new in RAW_COLUMNS.items()),
            sf.col(f"{PROBLEM}.reason"),
            sf.col(f"{PROBLEM}.detail"),
            sf.lit(self.clock()).alias("quarantined_at"),
            sf.lit(1).alias("attempts"),
        )
        names = [column.name for column in QUARANTINE_COLUMNS]
        writer.append(Rows.of(raw.select(*names)), self.tables.quarantine, txn=txn)

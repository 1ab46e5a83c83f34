"""Applies one micro-batch to a silver table, and records its counts.

Each write carries the batch's transaction id, so that a repeated batch does only what is missing.
The counts are recorded last, and a repeat replaces them.
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
from spark_jobs.quality.verdict import Outcome as Verdicts
from spark_jobs.quality.verdict import Verdict
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.silver.apply.current_rows import CurrentRows
from spark_jobs.silver.apply.drift_watch import DriftWatch
from spark_jobs.silver.apply.event_rows import EventRows
from spark_jobs.silver.apply.holding import BatchHold
from spark_jobs.silver.apply.outcome import HeldTables, Outcome
from spark_jobs.silver.apply.scd2_rows import Scd2Rows
from spark_jobs.silver.apply.verdicts import passed_on, verdict_on
from spark_jobs.silver.check.progress import first_part_app, first_part_written, last_written
from spark_jobs.silver.frontier import (
    Cut,
    Positions,
    TableFrontier,
    behind_targets,
    position,
    positions_of,
    reached_by,
)
from spark_jobs.silver.parse.documents import PROBLEM, RAW_COLUMNS
from spark_jobs.silver.parse.row_steps import RowSteps, row_steps
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.parse.typed import EARLY
from spark_jobs.silver.parse.unavailable import Carried
from spark_jobs.silver.store.releases import PLACE, releases, unsettled
from spark_jobs.silver.store.tables import QUARANTINE_COLUMNS, SilverTables
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.epochs import FIRST_EPOCH
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import policy, writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.log import table_version
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.reader import read
from spark_jobs.storage.rows import Rows
from spark_jobs.storage.writer import Joining

# Applies a batch, given its records and its number.
Apply = Callable[[DataFrame, int], SilverBatch | None]


def transaction_app(entry: SilverEntry, epoch: int) -> str:
    """The Delta app id of all writes to a silver table in an epoch."""
    return f"silver/{entry.name}/{epoch}"


@dataclass(frozen=True)
class BatchApplier:
    """Applies batches of bronze records to one silver table.

    Attributes:
        epoch: part of the transaction ids; see ``state.epochs``.
        max_bytes: longer records are quarantined.
        record: called with the counts of each finished batch.
        clock: returns the current time.
        held: reads the tables that records are compared with.
        ended: ids of the batches that this object has finished.
        placeholder: Debezium's placeholder for a value that the database did not send.
        maintenance: when small files are compacted.
        watch: compares records with the declaration; None: no check.
        frontier: where batches are cut; None: they are applied whole.
        hold: keeps a batch out that its suite blocks; None: it is applied.
        listener: called with the outcome of each part of a batch, before it is written.
        few: the largest batch that is judged and written without Spark.
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
    hold: BatchHold | None = None
    listener: Callable[[Outcome], None] | None = None
    few: Limit = policy.NOTHING

    def streamed(self, bronze: DataFrame) -> tuple[DataFrame, Apply]:
        """What a stream reads, and the function that applies each of its batches.

        The stream itself makes rows of records, so that Spark analyzes these steps once and not for
        each batch; except where records were released in another epoch, which are replaced before.

        Args:
            bronze: a stream with bronze's columns.
        """
        if any(one.epoch != self.epoch for one in releases(self.tables.releases)):
            return bronze, self.apply
        return self.rows(bronze), self.apply_rows

    def apply(self, bronze: DataFrame, batch_id: int) -> SilverBatch | None:
        """Apply one batch.

        Args:
            bronze: records with bronze's columns.
            batch_id: number of the batch in its epoch.

        Returns:
            the batch's counts; None if it had no records.

        Raises:
            SchemaDriftError: the records differ from the declaration; nothing was written.
            BatchHeldError: the suite blocks the batch; nothing was written.
        """
        records, settled = self._unsettled(bronze)
        return self._apply(_kept(self.rows(records)), batch_id, settled)

    def apply_rows(self, rows: DataFrame, batch_id: int) -> SilverBatch | None:
        """As ``apply``, for a batch whose records are rows, and were released in this epoch only.

        Args:
            rows: the batch's records as ``rows`` returns them.
            batch_id: number of the batch in its epoch.
        """
        kept = _kept(rows)
        left, settled = self._unsettled(kept, place=COORDINATES)
        return self._apply(_kept(left) if settled else kept, batch_id, settled)

    def _apply(self, rows: DataFrame, batch_id: int, settled: int) -> SilverBatch | None:
        before: dict[Disposition, int] = {}
        verdict = None
        rows, found = self._positioned(rows)
        target = None if found is None else self._cut_at(found, batch_id)
        if target is not None and self.frontier is not None:
            if self.entry.rules:
                # A suite judges the batch as a whole, before any of it is written.
                verdict = self._judge(self.writer.outcome(rows), batch_id)
            first = rows.where(position() < target)
            before = self._write_first_part(self._checked(first), batch_id)
            self._note_cut(self.frontier, target, batch_id)
            rows = rows.where(sf.coalesce(position() >= target, sf.lit(True)))  # noqa: FBT003
        outcome = self._checked(rows)
        verdict = verdict or self._judge(outcome, batch_id)
        return self.write(outcome, batch_id, settled=settled, before=before, verdict=verdict)

    def judged(self, bronze: DataFrame) -> Outcome:
        """The disposition of each bronze record, by the current declarations and tables."""
        return self.writer.outcome(_kept(self.rows(bronze)))

    def _checked(self, rows: DataFrame) -> Outcome:
        outcome = self.writer.outcome(rows)
        if self.frontier is not None and any(EARLY in one and one[EARLY] for one in outcome.groups):
            self.frontier.early = True
        if self.watch is not None:
            self.watch.look(outcome)
        if self.listener is not None:
            self.listener(outcome)
        return outcome

    def _judge(self, outcome: Outcome, batch_id: int) -> Verdict | None:
        """The suite's verdict on a batch; None if there is none, or nothing to judge.

        Raises:
            BatchHeldError: it blocks the batch.
        """
        verdict = verdict_on(self.entry, outcome) if outcome.groups else None
        if verdict is None or verdict.outcome is not Verdicts.BLOCKED:
            return verdict
        begun = not self.ended and last_written(self.tables, self.app) == batch_id
        # A batch that was begun by other rules is finished.
        if self.hold is not None and not begun:
            self.hold.refuse(verdict, batch_id)
        return passed_on(verdict)

    def _positioned(self, rows: DataFrame) -> tuple[DataFrame, Positions | None]:
        """The batch and its positions; None if it is not to be cut."""
        if self.frontier is None or not self.frontier.targets:
            return rows, None
        found = positions_of(rows)
        if found is None or not found.early:
            return rows, found
        if not isinstance(self.writer, EventRows):
            rows = self.writer.behind_snapshots(rows)
        rows = behind_targets(rows, self.frontier.targets)
        return rows, positions_of(rows)

    def _cut_at(self, found: Positions, batch_id: int) -> int | None:
        """The commit position at which to cut a batch; None: apply it whole."""
        frontier = self.frontier
        if frontier is None:
            return None
        lowest, highest, _ = found
        targets = frontier.advance(highest, lambda: reached_by(self.tables))
        if not targets:
            return None
        if not self.ended and first_part_written(self.tables, self.app) == batch_id:
            # An earlier run cut the batch and was killed. What it wrote stays; the rest is applied
            # without a cut.
            return None
        for target in targets:
            if target.position <= lowest:
                # The batch begins beyond it, so the version before the batch shows it.
                self._note_cut(frontier, target.position, batch_id)
        within = [target for target in targets if target.position > lowest]
        return max(within, key=lambda one: (one.weight, one.position)).position if within else None

    def _write_first_part(self, outcome: Outcome, batch_id: int) -> dict[Disposition, int]:
        """Write the records before the cut; returns their counts."""
        counts = outcome.counts
        self._write_parts(outcome, counts, Txn(first_part_app(self.app), batch_id))
        failpoint("silver.between_parts")
        return counts

    def _note_cut(self, frontier: TableFrontier, target: int, batch_id: int) -> None:
        """Record that the table now has all changes up to a position, and none after it."""
        version = table_version(self.tables.table)
        if version is not None:
            frontier.cuts.append(Cut(target, version, batch_id))

    @property
    def app(self) -> str:
        """The Delta app id of all writes."""
        return transaction_app(self.entry, self.epoch)

    @cached_property
    def projection(self) -> Projection:
        """The parsed SELECT of the table."""
        return split_projection(self.entry.projection)

    def _unsettled(
        self, records: DataFrame, *, place: tuple[str, str] = PLACE
    ) -> tuple[DataFrame, int]:
        """The records that this batch must judge, and the number of those rejected before.

        Only the first batch of a run, and batches of an epoch that reads bronze again, can contain
        such records.
        """
        if self.epoch == FIRST_EPOCH and self.ended:
            return records, 0
        spark = records.sparkSession
        rejected = self.held.read(spark, self.tables.quarantine)
        known = table_version(self.tables.releases) is not None
        released = read(spark, self.tables.releases) if known else None
        return unsettled(records, released, rejected, epoch=self.epoch, place=place)

    @cached_property
    def rows(self) -> RowSteps:
        """The transformation from bronze records to rows of this table."""
        return row_steps(
            self.source, self.entry, max_bytes=self.max_bytes, placeholder=self.placeholder
        )

    @cached_property
    def writer(self) -> EventRows | CurrentRows | Scd2Rows:
        """The object that applies rows to this kind of table."""
        joining = Joining(self.maintenance)
        match self.entry.apply:
            case ApplyMode.APPEND:
                return EventRows(self.tables, self.held, self.clock, joining, self.few)
            case ApplyMode.UPSERT:
                return CurrentRows(
                    self.tables, self.held, self.clock, self._carried.names, joining, self.few
                )
            case ApplyMode.HISTORY:
                return Scd2Rows(self.tables, self.held, self._carried.names, joining, self.few)

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
        verdict: Verdict | None = None,
    ) -> SilverBatch | None:
        """Write the outcome of ``judged`` and record the counts; None if there were no records.

        Args:
            outcome: the result of ``judged``.
            batch_id: version of the Delta transaction.
            settled: number of records that were rejected before and are not judged again.
            before: counts of the part before a cut.
            verdict: the suite's verdict on the batch, to be recorded with the counts.
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
            outcome=None if verdict is None else str(verdict.outcome),
            verdict=None if verdict is None else verdict.as_dict(),
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
            # A new epoch reads bronze again, so a rejected record may be in quarantine already.
            held = read(rejected.sparkSession, self.tables.quarantine).select(
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
        writer.append(
            Rows.of(raw.select(*names)),
            self.tables.quarantine,
            txn=txn,
            joining=Joining(self.maintenance),
        )


def _kept(rows: DataFrame) -> DataFrame:
    # A lazy local checkpoint: later steps read the rows several times, and planning costs more than
    # computing a small batch. The first job that reads the rows computes them.
    return rows.localCheckpoint(eager=False)

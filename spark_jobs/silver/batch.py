"""One micro-batch of a silver table: rejected records aside, the rest applied, all counted.

Each write carries the batch's transaction id, so a batch that is run again does what is still to
do; the counts are recorded last and replace themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.projection import Projection, split_projection
from spark_jobs.names import Disposition
from spark_jobs.silver.dispositions import (
    DISPOSITION,
    KNOWN,
    append_dispositions,
    upsert_dispositions,
)
from spark_jobs.silver.documents import PROBLEM, RAW_COLUMNS
from spark_jobs.silver.rows import COORDINATES, DELETED, EVENT_ID, silver_rows
from spark_jobs.silver.tables import QUARANTINE_COLUMNS, SilverTables
from spark_jobs.silver.typed import typed_records
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage.log import size
from spark_jobs.storage.streams import Merge, merge
from spark_jobs.storage.tables import Txn, append, read

ROWS_PER_FILE = 100_000
NEWER = "s.__sequence > t.__sequence"


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
        filled: the tables that were seen to hold rows.
    """

    source: SourceEntry
    entry: SilverEntry
    tables: SilverTables
    epoch: int
    max_bytes: int
    record: Callable[[SilverBatch], None]
    clock: Callable[[], datetime]
    filled: set[str] = field(default_factory=set)

    def apply(self, bronze: DataFrame, batch_id: int) -> SilverBatch | None:
        """Apply one batch; returns its counts, or None where it had no records."""
        # A stream begins with the empty table that it found.
        if not bronze.rdd.getNumPartitions():
            return None
        # Each step is kept with its plan cut off: what follows reads it several times, and
        # planning costs more than the rows of a small batch. The first job that reads a step
        # computes it, so keeping it takes no job of its own.
        rows = self._rows(bronze).localCheckpoint(eager=False)
        return self._write(self._annotated(rows).localCheckpoint(eager=False), batch_id)

    @cached_property
    def projection(self) -> Projection:
        """The table's SELECT, taken apart once."""
        return split_projection(self.entry.projection)

    def _rows(self, bronze: DataFrame) -> DataFrame:
        typed = typed_records(bronze, self.source, max_bytes=self.max_bytes)
        return silver_rows(typed, self.source, self.entry, projection=self.projection)

    def _annotated(self, rows: DataFrame) -> DataFrame:
        if self.entry.apply is ApplyMode.APPEND:
            table = self._held(rows.sparkSession, self.tables.table)
            return append_dispositions(rows, table, identity=self.tables.identity)
        places = (self.tables.table, self.tables.tombstones)
        held = (self._held(rows.sparkSession, place) for place in places)
        state = [table for table in held if table is not None]
        return upsert_dispositions(rows, state, keys=self.entry.keys)

    def _held(self, spark: SparkSession, location: str) -> DataFrame | None:
        """A table, or None while it is empty: to join with nothing takes several jobs."""
        if location not in self.filled and not size(location).files:
            return None
        self.filled.add(location)
        return read(spark, location)

    def _write(self, annotated: DataFrame, batch_id: int) -> SilverBatch | None:
        groups = annotated.groupBy(DISPOSITION, *self._kinds()).count().collect()
        if not groups:
            return None
        counts = dict.fromkeys(Disposition, 0)
        for group in groups:
            counts[Disposition(group[DISPOSITION])] += group["count"]
        # So many files as the rows are worth, not so many as the batch had tasks.
        annotated = annotated.coalesce(1 + sum(counts.values()) // ROWS_PER_FILE)
        txn = Txn(transaction_app(self.entry, self.epoch), batch_id)
        failpoint("silver.before_quarantine")
        if counts[Disposition.QUARANTINED]:
            self._quarantine(annotated, txn)
        failpoint("silver.after_quarantine")
        applied = annotated.where(sf.col(DISPOSITION) == str(Disposition.APPLIED))
        if counts[Disposition.APPLIED]:
            if self.entry.apply is ApplyMode.APPEND:
                self._append(applied.where(~sf.col(KNOWN)), txn)
            else:
                kinds = {
                    (group[KNOWN], group[DELETED])
                    for group in groups
                    if group[DISPOSITION] == Disposition.APPLIED
                }
                self._change(applied, txn, kinds=kinds)
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
        failpoint("silver.after_record")
        return batch

    def _kinds(self) -> tuple[str, ...]:
        return (KNOWN, DELETED) if self.entry.apply is ApplyMode.UPSERT else ()

    def _append(self, rows: DataFrame, txn: Txn) -> None:
        identity = [EVENT_ID] if self.entry.event_id is None else []
        names = [column.name for column in self.tables.columns if column.name not in identity]
        append(rows.select(*names, *identity), self.tables.table, txn=txn)

    def _change(self, rows: DataFrame, txn: Txn, *, kinds: set[tuple[bool, bool]]) -> None:
        """Tombstones first: a key that is only in the table is deleted by the batch's re-run."""
        names = tuple(column.name for column in self.tables.columns)
        keys = self.entry.keys
        if any(deleted for _, deleted in kinds):
            # A key may be deleted many times; who asks takes the last.
            columns = [column.name for column in self.tables.tombstone_columns]
            append(rows.where(DELETED).select(*columns), self.tables.tombstones, txn=txn)
            failpoint("silver.after_tombstones")
        if not any(known for known, _ in kinds):
            if (False, False) in kinds:
                append(rows.where(f"NOT {DELETED}").select(*names), self.tables.table, txn=txn)
        else:
            how = Merge(
                keys,
                names,
                update=f"NOT s.{DELETED} AND {NEWER}",
                insert=f"NOT s.{DELETED}",
                delete=f"s.{DELETED} AND {NEWER}",
            )
            merge(rows.select(*names, DELETED), self.tables.table, how, txn=txn)

    def _quarantine(self, annotated: DataFrame, txn: Txn) -> None:
        rejected = annotated.where(sf.col(DISPOSITION) == str(Disposition.QUARANTINED))
        if self.epoch > 1:
            # A new epoch reads bronze again, and what it rejects may be here already.
            held = read(annotated.sparkSession, self.tables.quarantine).select(
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
        append(raw.select(*names), self.tables.quarantine, txn=txn)

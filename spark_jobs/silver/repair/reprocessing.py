"""Reprocessing: judges quarantined records again, with fixed values if given, or discards them.

The writes are in an order that survives a kill: first the decision, then the silver table like a
batch, last the quarantine. A decided record that is still in quarantine is finished first, with the
value decided then. The table's guard is held, so that a record is applied once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import Disposition
from spark_jobs.planning.extent import Extent
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.apply.dispositions import DISPOSITION
from spark_jobs.silver.apply.outcome import HeldTables, Outcome
from spark_jobs.silver.parse.documents import PROBLEM
from spark_jobs.silver.parse.rows import COORDINATES
from spark_jobs.silver.repair.requests import (
    Reprocessed,
    ReprocessRequest,
    quarantined,
    requested,
    unfinished,
)
from spark_jobs.silver.store.lock import Guard
from spark_jobs.silver.store.releases import (
    PLACE,
    RELEASE_COLUMNS,
    released_value,
    reprocessing_app,
)
from spark_jobs.silver.store.tables import QUARANTINE_COLUMNS
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.failpoints import failpoint
from spark_jobs.storage import writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.reader import read
from spark_jobs.storage.rows import Merge, Rows
from spark_jobs.storage.streams import create_stream_table

_REJECTED = f"s.outcome = '{Disposition.QUARANTINED}'"
_DECIDED = ("epoch", "action", "mended_value", "released_by", "released_at", "reason_text")


@dataclass(frozen=True)
class Reprocessor:
    """Reprocesses records of one silver table, in one run.

    Attributes:
        applier: applies batches to the table by the current declarations.
        guard: keeps other writers of the table out.
    """

    spark: SparkSession
    applier: BatchApplier
    guard: Guard
    clock: Callable[[], datetime]

    def preview(self, asked: ReprocessRequest) -> list[Reprocessed]:
        """What would become of the records; writes nothing.

        Raises:
            NotInQuarantineError: a named record was never rejected.
            TypesDifferError: the table cannot store the declared types.
        """
        chosen = self._chosen(asked)
        return [] if chosen is None else _reprocessed(self._judged(chosen))

    def run(self, asked: ReprocessRequest) -> list[Reprocessed]:
        """Reprocess the records; records that are rejected again stay, with their new reason.

        Returns:
            the outcome of each record; records of an earlier, killed run come first.

        Raises:
            NotInQuarantineError: a named record was never rejected.
            TypesDifferError: the table cannot store the declared types.
            DeletionTooLargeError: many records would be discarded, and ``let_pass`` is not set.
        """
        with self.guard():
            tables = self.applier.tables
            tables.create(self.spark, self.source)
            create_stream_table(self.spark, tables.releases, RELEASE_COLUMNS)
            halfway = self._unfinished()
            finished = [] if halfway is None else self._release(halfway, again=True)
            chosen = self._chosen(asked)
            if chosen is not None and asked.discard:
                place = f"the quarantine of silver.{self.applier.entry.name}"
                extent = Extent(place, chosen.count(), len(quarantined(tables)))
                extent.check(let_pass=asked.let_pass)
            return finished + ([] if chosen is None else self._release(chosen, again=False))

    @property
    def source(self) -> SourceEntry:
        """The declaration by which records are judged."""
        return self.applier.source

    def _unfinished(self) -> DataFrame | None:
        """Decided records that are still in quarantine, or None."""
        if not unfinished(self.applier.tables):
            return None
        released = read(self.spark, self.applier.tables.releases).select(*PLACE, *_DECIDED)
        return self._quarantine().join(released, list(PLACE))

    def _chosen(self, asked: ReprocessRequest) -> DataFrame | None:
        """The requested records in quarantine with their decisions, or None."""
        held, named = requested(self.applier.tables, asked), asked.named
        if not held:
            return None
        found = self._quarantine()
        if asked.reason is not None:
            found = found.where(sf.col("reason") == asked.reason)
        if named is not None:
            rows = [(*place, asked.values.get(place)) for place in sorted(held)]
            types = "partition int, offset bigint, mended_value binary"
            wanted = sf.broadcast(self.spark.createDataFrame(rows, types))
            found = found.join(wanted, list(PLACE))
        else:
            found = found.withColumn("mended_value", sf.lit(None).cast("binary"))
        return found.withColumns(
            {
                "epoch": sf.lit(self.applier.epoch),
                "action": sf.lit(str(asked.action)),
                "released_by": sf.lit(asked.by),
                "released_at": sf.lit(self.clock()),
                "reason_text": sf.lit(asked.words).cast("string"),
            }
        )

    def _release(self, chosen: DataFrame, *, again: bool) -> list[Reprocessed]:
        """Store decisions, apply the records, and update the quarantine.

        Args:
            chosen: records in quarantine with their decisions.
            again: whether the decisions are stored already.
        """
        chosen = chosen.localCheckpoint(eager=False)
        outcome = self._judged(chosen)
        outcomes = _reprocessed(outcome)
        if not outcomes:
            return []
        tables, number = self.applier.tables, self.applier.tables.next_number()
        txn = Txn(self.applier.app, number)
        decided = chosen.join(_outcome_columns(outcome), list(PLACE))
        names = tuple(column.name for column in RELEASE_COLUMNS)
        failpoint("reprocess.before_releases")
        if again:
            # The stream or the declaration may have changed since the decision.
            how = Merge(
                PLACE, names, update="s.outcome <> t.outcome", insert="FALSE", delete=_REJECTED
            )
            writer.merge(Rows.of(decided), tables.releases, how, txn=txn)
        else:
            fitting = decided.where(f"outcome <> '{Disposition.QUARANTINED}'")
            writer.append(Rows.of(fitting.select(*names)), tables.releases, txn=txn)
        failpoint("reprocess.after_releases")
        self.applier.write(outcome, number)
        failpoint("reprocess.after_apply")
        # Records that are rejected again get their new reason and one more attempt.
        updated = {
            "reason": sf.coalesce("new_reason", "reason"),
            "detail": sf.when(sf.col("new_reason").isNull(), sf.col("detail")).otherwise(
                sf.col("new_detail")
            ),
            "attempts": sf.col("attempts") + 1,
        }
        how = Merge(
            PLACE,
            tuple(column.name for column in QUARANTINE_COLUMNS),
            update="TRUE",
            insert="FALSE",
            delete=f"NOT {_REJECTED}",
        )
        writer.merge(Rows.of(decided.withColumns(updated)), tables.quarantine, how, txn=txn)
        failpoint("reprocess.after_quarantine")
        return outcomes

    def _judged(self, chosen: DataFrame) -> Outcome:
        entry = self.applier.entry
        self.applier.tables.check_types(self.spark, self.source, entry=entry)
        # Quarantine has all columns of bronze.
        value = released_value("action", "mended_value")
        return self.applier.judged(chosen.withColumn("value", value))

    def _quarantine(self) -> DataFrame:
        return read(self.spark, self.applier.tables.quarantine)


class _Applier(BatchApplier):
    """Applies records like the table's stream, with a Delta app id of its own."""

    @property
    def app(self) -> str:
        return reprocessing_app(self.entry)

    def _quarantine(self, rejected: DataFrame, txn: Txn) -> None:
        """Nothing: records that are rejected again are in quarantine already."""


def reprocessor(applier: BatchApplier, spark: SparkSession, guard: Guard) -> Reprocessor:
    """A reprocessor for a table's applier; counts come from the releases."""
    given = {one.name: getattr(applier, one.name) for one in fields(applier)}
    own = given | {"record": _uncounted, "held": HeldTables(), "ended": set()}
    return Reprocessor(spark, _Applier(**own), guard, applier.clock)


def _uncounted(batch: SilverBatch) -> None:
    del batch


def _reprocessed(outcome: Outcome) -> list[Reprocessed]:
    rows = _outcome_columns(outcome).orderBy(*PLACE).collect()
    return [
        Reprocessed(row[0], row[1], Disposition(row[2]), row["new_reason"], row["new_detail"])
        for row in rows
    ]


def _outcome_columns(outcome: Outcome) -> DataFrame:
    # SCD type 2 outcomes also contain stored changes, which have no disposition.
    records = outcome.rows.where(sf.col(DISPOSITION).isNotNull())
    return records.select(
        *(sf.col(new).alias(old) for old, new in zip(PLACE, COORDINATES, strict=True)),
        sf.col(DISPOSITION).alias("outcome"),
        sf.col(f"{PROBLEM}.reason").alias("new_reason"),
        sf.col(f"{PROBLEM}.detail").alias("new_detail"),
    )

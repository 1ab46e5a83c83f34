"""The streaming query of one silver table: applies bronze rows in micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.access.secrets import unavailable_placeholder
from spark_jobs.deploy.streams import silver_definition
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import Expiry, SilverEntry, SourceEntry
from spark_jobs.settings import Settings
from spark_jobs.silver.apply.batch import Apply, BatchApplier, transaction_app
from spark_jobs.silver.apply.drift_watch import DriftWatch
from spark_jobs.silver.apply.holding import BatchHold
from spark_jobs.silver.apply.outcome import Outcome
from spark_jobs.silver.check.progress import last_written, replaced
from spark_jobs.silver.frontier import Frontiers
from spark_jobs.silver.repair.declared import DeclaredTable, alone, beside
from spark_jobs.silver.repair.expiring import Expirer
from spark_jobs.silver.repair.pause import PausedStream
from spark_jobs.silver.repair.rebuild import Rebuilder
from spark_jobs.silver.repair.reprocessing import Reprocessor, reprocessor
from spark_jobs.silver.store.lock import table_guard
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.checkpoints import damage, last_planned
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.policy import batch_limit
from spark_jobs.storage.streams import by_operators, read_stream


@dataclass(frozen=True)
class SilverFlow:
    """Keeps a silver table up to date with its bronze table.

    Attributes:
        now: returns the current time.
    """

    source: SourceEntry
    entry: SilverEntry
    settings: Settings
    store: ControlStore
    frontiers: Frontiers = field(default_factory=Frontiers)
    now: Callable[[], datetime] = utc_now

    @property
    def name(self) -> str:
        """The query's name: that of the table."""
        return str(self.entry.table_name)

    @property
    def definition(self) -> str:
        """The declarations that the query runs with, as text; another text restarts it."""
        return silver_definition(self.source, self.entry)

    @property
    def tables(self) -> SilverTables:
        """Locations of the table and its helper tables."""
        return SilverTables.of(Lake(self.settings.lake), self.entry)

    def checkpoint(self, epoch: int) -> str:
        """Location of the query's checkpoint in an epoch."""
        return Lake(self.settings.lake).checkpoint(self.name, epoch)

    def create_tables(self, spark: SparkSession) -> None:
        """Create the missing ones of the table, its quarantine and its helper tables, empty."""
        self.tables.create(spark, self.source)

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Resume the query, or start a new epoch at bronze's first record.

        Raises:
            TypesDifferError: the table cannot follow the declared columns.
            SchemaDriftError: records differ from the declaration, and the source's policy blocks
                the table.
            BatchHeldError: the next batch fails the table's suite.
        """
        with self._guard():
            self.tables.evolve(spark, self.source)
        self._watch.check()
        epoch = self._epoch()
        self._hold(epoch).check()
        bronze = Lake(self.settings.lake).location(self.source.table_name)
        pace = f"{self.settings.streams.silver_trigger_seconds} seconds"
        frame, apply = self._stream_applier(epoch).streamed(
            read_stream(by_operators(spark), bronze)
        )
        return (
            frame.writeStream.queryName(self.name)
            .option("checkpointLocation", self.checkpoint(epoch))
            .trigger(processingTime=pace)
            .foreachBatch(self._guarded(apply))
            .start()
        )

    def batches(
        self, epoch: int, *, listener: Callable[[Outcome], None] | None = None
    ) -> Callable[[DataFrame, int], None]:
        """The function that applies the batches of an epoch, given bronze records and the batch's
        id.

        Args:
            epoch: part of the transaction ids.
            listener: called with the outcome of each part of a batch, before it is written.
        """
        return self._guarded(replace(self._stream_applier(epoch), listener=listener).apply)

    def reprocessor(self, spark: SparkSession) -> Reprocessor:
        """Reprocesses quarantined records of this table, next to the running query."""
        applier = self._applier(self.store.epoch(self.name))
        return reprocessor(applier, by_operators(spark), self._guard)

    def rebuilder(self, spark: SparkSession) -> Rebuilder:
        """Rebuilds this table from bronze, next to the running query."""
        epoch, lake = self.store.epoch(self.name), Lake(self.settings.lake)
        return Rebuilder(
            spark=by_operators(spark),
            stream=self._paused_stream(epoch),
            source=self.source,
            entry=self.entry,
            bronze=lake.location(self.source.table_name),
            folder=lake.rebuild(self.entry.name),
        )

    def declared(
        self, spark: SparkSession, running: SilverFlow | None
    ) -> AbstractContextManager[DeclaredTable]:
        """Builds this table from bronze while the block runs; nothing else is written.

        Args:
            spark: any classic session.
            running: the same table with the declarations that its query runs with; None if it has
                no query.
        """
        declared = self._applier(self.store.epoch(self.name))
        if running is not None and running.entry.source == self.entry.source:
            return beside(running.rebuilder(spark), declared)
        lake = Lake(self.settings.lake)
        bronze, folder = lake.location(self.source.table_name), lake.rebuild(self.entry.name)
        return alone(by_operators(spark), declared, bronze=bronze, folder=folder)

    def expirer(self, spark: SparkSession, expiry: Expiry) -> Expirer:
        """Deletes expired rows of this table, next to the running query."""
        return Expirer(spark, self._paused_stream(self.store.epoch(self.name)), expiry)

    def diagnose(self, error: Exception) -> LakehouseError | None:
        """What blocks the table: schema drift or a held batch; other errors need no decision."""
        del error
        try:
            self._watch.check()
            self._hold(self.store.epoch(self.name)).check()
        except LakehouseError as found:
            return found
        return None

    def watch(self, ids: dict[str, str]) -> LakehouseError | None:
        """Nothing: bronze watches the topic."""
        del ids
        return None

    def _stream_applier(self, epoch: int) -> BatchApplier:
        frontier = self.frontiers.of(self.entry.name)
        return replace(self._applier(epoch), frontier=frontier, hold=self._hold(epoch))

    def _guarded(self, apply: Apply) -> Callable[[DataFrame, int], None]:
        frontier = self.frontiers.of(self.entry.name)

        def guarded(frame: DataFrame, batch_id: int) -> None:
            with self._guard(), frontier.batch:
                apply(frame, batch_id)

        return guarded

    def _applier(self, epoch: int) -> BatchApplier:
        return BatchApplier(
            source=self.source,
            entry=self.entry,
            tables=self.tables,
            epoch=epoch,
            max_bytes=self.settings.streams.max_record_bytes,
            record=self.store.record_silver_batch,
            clock=self.now,
            placeholder=unavailable_placeholder(self.settings),
            maintenance=self.settings.maintenance,
            watch=self._watch,
            few=batch_limit(self.settings.streams.engine),
        )

    @property
    def _watch(self) -> DriftWatch:
        return DriftWatch(self.source, self.entry, self.store)

    def _hold(self, epoch: int) -> BatchHold:
        return BatchHold(self.entry, self.store, epoch, self.now)

    def _paused_stream(self, epoch: int) -> PausedStream:
        return PausedStream(self._applier(epoch), self.store, self.checkpoint(epoch), self._guard)

    def _guard(self) -> AbstractContextManager[object]:
        return table_guard(self.settings, self.store, self.entry.table_name)

    def _epoch(self) -> int:
        """The epoch to run in; a new one if the checkpoint is damaged, behind the table or ahead of
        bronze.

        Delta skips a used transaction id silently, so batches that are planned again need new ids.
        Applying records twice changes nothing, so a new epoch can read bronze from the start.
        """
        epoch = self.store.epoch(self.name)
        if problem := damage(self.checkpoint(epoch)):
            return self.store.bump_epoch(self.name, reason=problem)
        planned = last_planned(self.checkpoint(epoch))
        written = last_written(self.tables, transaction_app(self.entry, epoch))
        if written is not None and (planned is None or planned < written):
            reason = f"checkpoint ends at batch {planned}, the table at batch {written}"
            return self.store.bump_epoch(self.name, reason=reason)
        bronze = Lake(self.settings.lake).location(self.source.table_name)
        if problem := replaced(bronze, self.checkpoint(epoch)):
            return self.store.bump_epoch(self.name, reason=problem)
        return epoch

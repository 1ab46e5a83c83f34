"""One source's streaming query from Kafka to bronze, guarded against silent loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.bronze.errors import CheckpointDamagedError, CheckpointLostError, DataLossError
from spark_jobs.bronze.guard import check_topic
from spark_jobs.bronze.landing import Landing
from spark_jobs.bronze.position import (
    Start,
    known_id,
    next_offsets,
    read_start,
    start_after,
    starting_offsets,
    write_identity,
    write_start,
)
from spark_jobs.bronze.table import COLUMNS, lacking_columns, received
from spark_jobs.bronze.tail import check_tail, held_at, last_landed
from spark_jobs.bronze.topics import TopicFacts, Topics
from spark_jobs.errors import LakehouseError, RefusedError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import BronzeColumn
from spark_jobs.settings import Settings
from spark_jobs.storage.checkpoints import (
    damage,
    last_committed,
    last_planned,
    newest_checkpoint,
    newest_epoch,
    query_id,
)
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import size, transaction_version
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.writer import add_columns


@dataclass(frozen=True)
class BronzeFlow:
    """Lands one topic in one bronze table."""

    source: SourceEntry
    settings: Settings
    topics: Topics

    @property
    def name(self) -> str:
        """The query's name, which is the table's."""
        return str(self.source.table_name)

    @property
    def definition(self) -> str:
        """What the query runs as: bytes land as they are, so only the topic matters."""
        return self.topic

    @property
    def topic(self) -> str:
        """The topic that is read."""
        return self.source.topic or ""

    @property
    def table(self) -> str:
        """Where the bronze table lies."""
        return Lake(self.settings.lake).location(self.source.table_name)

    @property
    def checkpoint(self) -> str:
        """Where the query's checkpoint of the newest epoch lies."""
        return newest_checkpoint(Lake(self.settings.lake), self.name)

    def create_tables(self, spark: SparkSession) -> None:
        """Create the bronze table, empty, or add the columns that an earlier release had not."""
        create_stream_table(spark, self.table, COLUMNS, partition_by=(BronzeColumn.ARRIVAL_DATE,))
        lacking = lacking_columns(self.table)
        if lacking:
            add_columns(spark, self.table, lacking)

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query.

        Raises:
            RefusedError: records are lost, or where to go on is.
            TopicMissingError: the topic does not exist yet.
            KafkaUnreachableError: no broker answers.
        """
        checkpoint, facts = self.checkpoint, self._check()
        write_identity(checkpoint, facts)
        streams = self.settings.streams
        share = math.ceil(streams.max_offsets_per_trigger / streams.bronze_tasks)
        kafka = (
            spark.readStream.format("kafka")
            .options(**self.topics.access.spark())
            .option("subscribe", self.topic)
            .option("startingOffsets", starting_offsets(facts, read_start(checkpoint)))
            .option("failOnDataLoss", "true")
            .option("includeHeaders", "true")
            .option("maxOffsetsPerTrigger", streams.max_offsets_per_trigger)
            # So that catching up uses the cores; a partition is else one task, however much waits.
            .option("maxRecordsPerPartition", share)
            # Records of aborted transactions are no records.
            .option("kafka.isolation.level", "read_committed")
            .load()
        )
        landing = Landing(
            self.table,
            checkpoint,
            tasks=streams.bronze_tasks,
            maintenance=self.settings.maintenance,
        )
        return (
            received(kafka)
            .writeStream.queryName(self.name)
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{streams.bronze_trigger_seconds} seconds")
            .foreachBatch(landing.land)
            .start()
        )

    def diagnose(self, error: Exception) -> LakehouseError | None:
        """The condition behind a query's failure, or None where trying again may help."""
        try:
            self._check()
        except LakehouseError as found:
            return found
        text = str(error)
        lost = "DATA_LOSS" in text or "failOnDataLoss" in text
        return DataLossError(self.topic, text.strip().splitlines()[0]) if lost else None

    def watch(self, ids: dict[str, str]) -> LakehouseError | None:
        """Whether the running query reads a topic that was created again.

        Args:
            ids: the identities of all topics as they are now.
        """
        found = ids.get(self.topic)
        known = self._known_id()
        if found is None or known is None or found == known:
            return None
        return self.diagnose(RuntimeError("topic identity changed"))

    def refusal(self) -> RefusedError | None:
        """Why the query is refused; None where it can go on.

        Raises:
            TopicMissingError: the topic does not exist yet.
            KafkaUnreachableError: no broker answers.
        """
        try:
            self._check()
        except RefusedError as error:
            return error
        return None

    def start_after_table(self) -> Start:
        """Where the query would go on by what its table holds.

        Raises:
            RefusedError: the topic is another one, or lost records that bronze has read.
            TopicMissingError: the topic does not exist yet.
            KafkaUnreachableError: no broker answers.
        """
        held, facts = next_offsets(self.table), self.topics.facts(self.topic)
        # What has expired is shown, and is no reason to refuse.
        check_topic(facts, self._known_id(), read_to={})
        self._check_tail(facts, held)
        return start_after(held, facts)

    def resume(self, start: Start, *, by: str, reason: str, at: datetime) -> None:
        """Begin a new checkpoint; a query that is refused takes it up when it is tried again.

        Raises:
            TopicMissingError: the topic does not exist.
            KafkaUnreachableError: no broker answers.
        """
        lake = Lake(self.settings.lake)
        checkpoint = lake.checkpoint(self.name, newest_epoch(lake, self.name) + 1)
        write_identity(checkpoint, self.topics.facts(self.topic))
        write_start(checkpoint, start, by=by, reason=reason, at=at.isoformat())

    def _check(self) -> TopicFacts:
        checkpoint = self.checkpoint
        self._check_checkpoint(checkpoint)
        committed = last_committed(checkpoint)
        offsets = committed.offsets.get(self.topic, {}) if committed else {}
        read_to = {int(partition): int(offset) for partition, offset in offsets.items()}
        facts = self.topics.facts(self.topic)
        check_topic(facts, self._known_id(), read_to=read_to)
        if read_to:
            self._check_tail(facts, read_to)
        return facts

    def _check_tail(self, facts: TopicFacts, read_to: Mapping[int, int]) -> None:
        check_tail(
            facts,
            read_to=read_to,
            landed=last_landed(self.table, read_to),
            held=lambda asked: held_at(facts, self.topics.access, asked),
        )

    def _check_checkpoint(self, checkpoint: str) -> None:
        planned = last_planned(checkpoint)
        if planned is None:
            if not size(self.table).files:
                return
            start = read_start(checkpoint)
            if start is None or start.held != next_offsets(self.table):
                raise CheckpointLostError(self.source.name, checkpoint)
            return
        problem = damage(checkpoint)
        if problem is None:
            # A batch is planned before it is written. Its number would be skipped silently.
            written = transaction_version(self.table, query_id(checkpoint) or checkpoint)
            if written is not None and written > planned:
                problem = f"{checkpoint} ends at batch {planned}, the table at batch {written}"
        if problem is not None:
            raise CheckpointDamagedError(self.source.name, problem)

    def _known_id(self) -> str | None:
        return known_id(self.checkpoint)

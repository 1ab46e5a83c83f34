"""The streaming query from a Kafka topic to bronze, with checks against silent data loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.bronze.errors import (
    CheckpointDamagedError,
    CheckpointLostError,
    DataLossError,
    RecordUnreadableError,
    positions,
)
from spark_jobs.bronze.guard import check_topic
from spark_jobs.bronze.landing import Landing
from spark_jobs.bronze.position import (
    Start,
    identity_file,
    identity_torn,
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
from spark_jobs.storage.policy import batch_limit
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.writer import add_columns

# Limits of a client on a silent connection: of the consumers, which occupy tasks meanwhile, and of
# the driver's client, which asks for the newest offsets. Kafka's defaults are 30 and 60 seconds.
REQUEST_SECONDS, CALL_SECONDS = 10, 20
# What Spark says if a timestamp in milliseconds does not fit into a number of microseconds.
_TIME_TOO_FAR = "long overflow"


@dataclass(frozen=True)
class BronzeFlow:
    """Lands one topic in one bronze table."""

    source: SourceEntry
    settings: Settings
    topics: Topics

    @property
    def name(self) -> str:
        """The query's name: that of the table."""
        return str(self.source.table_name)

    @property
    def definition(self) -> str:
        """The topic: bytes are stored as received, so no other change needs a restart."""
        return self.topic

    @property
    def topic(self) -> str:
        """The source topic."""
        return self.source.topic or ""

    @property
    def table(self) -> str:
        """Location of the bronze table."""
        return Lake(self.settings.lake).location(self.source.table_name)

    @property
    def checkpoint(self) -> str:
        """Location of the query's newest checkpoint."""
        return newest_checkpoint(Lake(self.settings.lake), self.name)

    def create_tables(self, spark: SparkSession) -> None:
        """Create the bronze table, empty, or add columns that older releases did not have."""
        create_stream_table(spark, self.table, COLUMNS, partition_by=(BronzeColumn.ARRIVAL_DATE,))
        lacking = lacking_columns(self.table)
        if lacking:
            add_columns(spark, self.table, lacking)

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query.

        Raises:
            RefusedError: records are lost, or the position to resume from.
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
            # Split partitions, so that catching up uses all cores.
            .option("maxRecordsPerPartition", share)
            # Skip records of aborted transactions.
            .option("kafka.isolation.level", "read_committed")
            .option("kafka.request.timeout.ms", REQUEST_SECONDS * 1000)
            .option("kafka.default.api.timeout.ms", CALL_SECONDS * 1000)
            .load()
        )
        landing = Landing(
            self.table,
            checkpoint,
            tasks=streams.bronze_tasks,
            few=batch_limit(streams.engine),
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
        """The error behind a query's failure, or None if a restart may help."""
        try:
            self._check()
        except LakehouseError as found:
            return found
        text = str(error)
        if _TIME_TOO_FAR in text:
            return RecordUnreadableError(self.topic, self._read_to(self.checkpoint))
        lost = "DATA_LOSS" in text or "failOnDataLoss" in text
        return DataLossError(self.topic, text.strip().splitlines()[0]) if lost else None

    def watch(self, ids: dict[str, str]) -> LakehouseError | None:
        """The error if the topic of the running query was recreated.

        Args:
            ids: current ids of all topics, by name.
        """
        found = ids.get(self.topic)
        known = self._known_id()
        if found is None or known is None or found == known:
            return None
        return self.diagnose(RuntimeError("topic identity changed"))

    def refusal(self) -> RefusedError | None:
        """Why the query is refused; None if it may run.

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
        """The position to resume from, according to the bronze table.

        Raises:
            RefusedError: the topic was recreated, or lost records that bronze has read.
            TopicMissingError: the topic does not exist yet.
            KafkaUnreachableError: no broker answers.
        """
        held, facts = next_offsets(self.table), self.topics.facts(self.topic)
        # Expired records are shown, but are no reason to refuse; nor is a topic that was created
        # again if the table has no record of the old one.
        check_topic(facts, self._known_id() if held else None, read_to={})
        self._check_tail(facts, held)
        return start_after(held, facts)

    def resume(self, start: Start, *, by: str, reason: str, at: datetime) -> None:
        """Start a new checkpoint; a refused query uses it at its next try.

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
        read_to = self._read_to(checkpoint)
        facts = self.topics.facts(self.topic)
        check_topic(facts, self._known_id(), read_to=read_to)
        if read_to:
            self._check_tail(facts, read_to)
        return facts

    def _check_tail(self, facts: TopicFacts, read_to: Mapping[int, int]) -> None:
        lacking = check_tail(
            facts,
            read_to=read_to,
            landed=last_landed(self.table, read_to),
            held=lambda asked: held_at(facts, self.topics.access, asked),
        )
        if lacking:
            # Otherwise the query would go on after records that are in the topic only.
            problem = (
                f"{self.checkpoint} ends at {positions(read_to)}, and the table lacks records from "
                f"{positions(lacking)} on"
            )
            raise CheckpointDamagedError(self.source.name, problem)

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
        if problem is None and identity_torn(checkpoint):
            problem = f"{identity_file(checkpoint)} is not whole"
        if problem is None:
            # Otherwise the table is ahead of the checkpoint, and Delta would skip batches silently.
            written = transaction_version(self.table, query_id(checkpoint) or checkpoint)
            if written is not None and written > planned:
                problem = f"{checkpoint} ends at batch {planned}, the table at batch {written}"
        if problem is not None:
            raise CheckpointDamagedError(self.source.name, problem)

    def _read_to(self, checkpoint: str) -> dict[int, int]:
        """The next offset to read, by partition."""
        committed = last_committed(checkpoint)
        offsets = committed.offsets.get(self.topic, {}) if committed else {}
        return {int(partition): int(offset) for partition, offset in offsets.items()}

    def _known_id(self) -> str | None:
        return known_id(self.checkpoint)

"""One source's streaming query from Kafka to bronze, guarded against silent loss."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.bronze.errors import CheckpointLostError, DataLossError
from spark_jobs.bronze.guard import check_topic
from spark_jobs.bronze.landing import Landing
from spark_jobs.bronze.table import COLUMNS, lacking_columns, received
from spark_jobs.bronze.topics import TopicFacts, Topics
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.names import BronzeColumn
from spark_jobs.settings import Settings
from spark_jobs.storage.checkpoints import last_committed, last_planned, read_text, write_text
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import size
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.tables import add_columns

# Bronze starts a checkpoint once; a lost one is refused, so there is no second.
EPOCH = 1


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
    def topic(self) -> str:
        """The topic that is read."""
        return self.source.topic or ""

    @property
    def table(self) -> str:
        """Where the bronze table lies."""
        return Lake(self.settings.lake).location(self.source.table_name)

    @property
    def checkpoint(self) -> str:
        """Where the query's checkpoint lies."""
        return Lake(self.settings.lake).checkpoint(self.name, EPOCH)

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
        facts = self._check()
        write_text(self._identity_file, json.dumps({"topic": self.topic, "id": facts.topic_id}))
        streams = self.settings.streams
        share = math.ceil(streams.max_offsets_per_trigger / streams.bronze_tasks)
        kafka = (
            spark.readStream.format("kafka")
            .options(**self.topics.access.spark())
            .option("subscribe", self.topic)
            .option("startingOffsets", "earliest")
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
            self.table, self.checkpoint, tasks=streams.bronze_tasks, care=self.settings.care
        )
        return (
            received(kafka)
            .writeStream.queryName(self.name)
            .option("checkpointLocation", self.checkpoint)
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

    def _check(self) -> TopicFacts:
        committed = last_committed(self.checkpoint)
        if last_planned(self.checkpoint) is None and size(self.table).files:
            raise CheckpointLostError(self.source.name, self.checkpoint)
        offsets = committed.offsets.get(self.topic, {}) if committed else {}
        read_to = {int(partition): int(offset) for partition, offset in offsets.items()}
        facts = self.topics.facts(self.topic)
        check_topic(facts, self._known_id(), read_to=read_to)
        return facts

    @property
    def _identity_file(self) -> str:
        return f"{self.checkpoint}.topic.json"

    def _known_id(self) -> str | None:
        text = read_text(self._identity_file)
        return None if text is None else str(json.loads(text)["id"])

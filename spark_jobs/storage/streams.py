"""Delta tables as targets and sources of streams."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable, Schema

from spark_jobs.settings import Settings
from spark_jobs.storage.columns import ColumnSpec, struct_type
from spark_jobs.storage.delta import CHANGE_FEED
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.log import table_version
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.session import driver_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A stream commits every few seconds. Log checkpoints are rarer than by default: each costs a job.
STREAM_TABLE = {"delta.checkpointInterval": "50"}
POOLS = Path(__file__).with_name("pools.xml")
BATCH_BYTES = "256m"
BATCH_FILES = 1000


def streaming_conf(settings: Settings) -> dict[str, str]:
    """Settings of the streaming application's session, in addition to those of every session."""
    return {
        "spark.ui.port": str(settings.ports.streams_ui),
        # Share the cores fairly between streams and continuous views.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": POOLS.as_uri(),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        # The writer compacts: see ``compaction``. Tables of earlier releases have the property.
        "spark.databricks.delta.autoCompact.enabled": "false",
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.streaming.minBatchesToRetain": "20",
        # The UI of an endless application needs little history.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.streaming.ui.retainedQueries": "30",
        # Adaptive execution does not help small batches.
        "spark.sql.adaptive.enabled": "false",
        # Every query has dozens of generated classes. With the default of 100 they evict each other
        # and are recompiled in every batch.
        "spark.sql.codegen.cache.maxEntries": "5000",
    }


def streaming_session(settings: Settings) -> SparkSession:
    """The session of the streaming application.

    It opens the server by which the JVM hands batches to Python. ``foreachBatch`` would open it,
    too, but two queries that start at the same time would open two, and the JVM would know one.

    Raises:
        JarsMissingError: Delta's jars are not in the directory that the settings name.
        StoreJarsMissingError: the lake is in S3, and the jars for S3 are missing.
        JavaMissingError: Java is not installed.
    """
    # The core can be imported without Spark.
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415

    spark = driver_session(settings, "tidemark streams", conf=streaming_conf(settings))
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    return spark


def by_operators(spark: SparkSession) -> SparkSession:
    """A copy of the session that compiles each operator of a query by itself.

    Spark would compile all operators of a stage as one method. For records with many checks that
    method always exceeds ``spark.sql.codegen.hugeMethodLimit``, so Spark would generate it for each
    batch, discard it, and then compile each operator by itself anyway.

    Args:
        spark: a classic session; it stays as it is.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415

    # A stream copies its session in the same way. PySpark's newSession would lose its settings.
    copied = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001
    copied.conf.set("spark.sql.codegen.wholeStage", "false")
    return copied


@usual_rights()
def create_stream_table(
    spark: SparkSession,
    location: str,
    columns: Sequence[ColumnSpec],
    *,
    partition_by: Sequence[str] = (),
    change_feed: bool = False,
) -> None:
    """Create an empty table for a stream, unless it exists.

    It writes only a log entry, without a Spark job: an application with dozens of tables would
    otherwise need a minute to start.
    """
    properties = {**STREAM_TABLE, **(CHANGE_FEED if change_feed else {})}
    if table_version(location) is None:
        DeltaTable.create(
            plain_location(location),
            schema=Schema.from_json(struct_type(spark, columns).json()),
            mode="ignore",
            partition_by=list(partition_by),
            configuration=properties,
            raise_if_key_not_exists=False,
        )


def read_stream(spark: SparkSession, location: str) -> DataFrame:
    """Stream the rows that are appended to a table, with its columns, from its first version on.

    Commits that change existing rows, such as forgetting, are skipped.
    """
    return (
        spark.readStream.format("delta")
        .option("skipChangeCommits", "true")
        .option("maxBytesPerTrigger", BATCH_BYTES)
        .option("maxFilesPerTrigger", BATCH_FILES)
        .load(location)
    )

"""What streams need of Delta: tables to write to, and streaming reads."""

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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A stream commits every few seconds: Delta joins small files after a commit, in the process that
# wrote it, and a failure of that fails no batch. The log is condensed less often than by default,
# because each time costs a job.
STREAM_TABLE = {
    "delta.autoOptimize.autoCompact": "true",
    "delta.checkpointInterval": "50",
}
POOLS = Path(__file__).with_name("pools.xml")
BATCH_BYTES = "256m"
BATCH_FILES = 1000


def streaming_conf(settings: Settings) -> dict[str, str]:
    """What the streaming application's session has beyond every session's configuration."""
    return {
        "spark.ui.port": str(settings.ports.streams_ui),
        # Streams and continuous views take turns; neither may hold the cores while the others wait.
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": POOLS.as_uri(),
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.databricks.delta.autoCompact.minNumFiles": str(settings.maintenance.small_files),
        "spark.databricks.delta.autoCompact.minFileSize": str(
            settings.maintenance.small_file_bytes
        ),
        "spark.sql.streaming.stopTimeout": "10s",
        "spark.sql.streaming.numRecentProgressUpdates": "2",
        "spark.sql.streaming.minBatchesToRetain": "20",
        # Pages of finished work are of no use to an application without end.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.streaming.ui.retainedQueries": "30",
        # Small batches gain nothing from plans that are changed while they run.
        "spark.sql.adaptive.enabled": "false",
        # Every query brings dozens of generated classes; with Spark's default of 100 they push
        # each other out and are recompiled in every batch.
        "spark.sql.codegen.cache.maxEntries": "5000",
    }


@usual_rights()
def create_stream_table(
    spark: SparkSession,
    location: str,
    columns: Sequence[ColumnSpec],
    *,
    partition_by: Sequence[str] = (),
    change_feed: bool = False,
) -> None:
    """Create an empty table for a stream to write, unless there is one already.

    An empty table is a log entry. It is written without a Spark job, because an application with
    dozens of tables would otherwise take a minute to start.
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
    """The rows that are appended to a table, from its first version on.

    A commit that changes rows, as forgetting does, brings no new ones and is passed over.
    """
    return (
        spark.readStream.format("delta")
        .option("skipChangeCommits", "true")
        .option("maxBytesPerTrigger", BATCH_BYTES)
        .option("maxFilesPerTrigger", BATCH_FILES)
        .load(location)
    )

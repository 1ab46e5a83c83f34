"""What streams need of Delta: tables, merges with a transaction id, streaming reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable, Schema

from spark_jobs.settings import Settings
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.log import table_version
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.tables import (
    CHANGE_FEED,
    ColumnSpec,
    Txn,
    struct_type,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# A stream commits every few seconds: Delta joins small files after a commit, in the process that
# wrote it, and a failure of that fails no batch. The log is condensed less often than by default,
# because each time costs a job.
STREAM_TABLE = {
    "delta.autoOptimize.autoCompact": "true",
    "delta.checkpointInterval": "50",
}
POOLS = Path(__file__).with_name("pools.xml")
_TXN = "spark.databricks.delta.write.txn"
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


@dataclass(frozen=True)
class Merge:
    """Rows to merge by key: which change, which go in, which leave; conditions over t and s.

    Attributes:
        delete_others: which rows to delete although no row of the source has their key; over t.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    update: str
    insert: str
    delete: str | None = None
    delete_others: Column | None = None


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


def merge(source: DataFrame, location: str, how: Merge, *, txn: Txn) -> None:
    """Merge rows into a table in one commit; at most one source row may have a key."""
    from delta.tables import DeltaTable as SparkTable  # noqa: PLC0415

    values = {f"`{name}`": f"s.`{name}`" for name in how.columns}
    matches = " AND ".join(f"t.`{key}` = s.`{key}`" for key in how.keys)
    spark = source.sparkSession
    with _transaction(spark, txn):
        builder = SparkTable.forPath(spark, location).alias("t").merge(source.alias("s"), matches)
        if how.delete:
            builder = builder.whenMatchedDelete(how.delete)
        if how.delete_others is not None:
            builder = builder.whenNotMatchedBySourceDelete(how.delete_others)
        builder = builder.whenMatchedUpdate(how.update, set=values)
        builder.whenNotMatchedInsert(how.insert, values=values).execute()


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


@contextmanager
def _transaction(spark: SparkSession, txn: Txn) -> Iterator[None]:
    # Merges take their transaction id from the session; each query has a session of its own.
    conf: Mapping[str, str] = {
        f"{_TXN}AppId": txn.app_id,
        f"{_TXN}Version": str(txn.version),
    }
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in conf:
            spark.conf.unset(key)

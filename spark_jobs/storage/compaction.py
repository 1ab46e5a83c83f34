"""Joining the small files of a table, by the one who may write it.

After Spark's commit to a stream's table Delta does it (see ``streams``). A published table, or that
of a stream whose batch was small, is written without Spark, so whoever wrote it does it. The commit
says of each file that no row changed: change feeds, streams and refreshes pass over it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable

from spark_jobs.sections import MaintenanceSettings
from spark_jobs.storage import log, plain, policy
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.tables import session_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SMALL = "spark.databricks.delta.optimize.minFileSize"


@usual_rights()
def join_small_files(
    location: str, maintenance: MaintenanceSettings, *, spark: Callable[[], SparkSession]
) -> int | None:
    """Join a table's small files where there are too many of them.

    The caller has the sole right to write the table, and what it wrote stands already: an error
    is logged, and the next write tries again.

    Args:
        location: of the table, which has no partitions.
        maintenance: what is small, and too many.
        spark: a session, for tables that are not rewritten without.

    Returns:
        how many files there are now; None where nothing was done.
    """
    try:
        if small_files(location, maintenance) < policy.joined_at(maintenance.small_files):
            return None
        return _join(location, maintenance, spark)
    except Exception as error:  # noqa: BLE001 - it may never fail the write that it follows
        logger.warning("small files not joined location=%s error=%s", location, error)
        return None


def small_files(location: str, maintenance: MaintenanceSettings) -> int:
    """How many files of a table are small; 0 where there is no table."""
    table = log.open_table(location)
    if table is None:
        return 0
    sizes = log.files(table).column("size_bytes")
    return int(pc.sum(pc.less(sizes, maintenance.small_file_bytes)).as_py() or 0)


@usual_rights()
def join_partition(
    table: DeltaTable, maintenance: MaintenanceSettings, *, column: str, value: str
) -> int | None:
    """Join the small files of one partition where there are too many of them, without Spark.

    The caller has the sole right to write the table, and what it wrote stands already: an error
    is logged, and the next write tries again.

    Args:
        table: as it is now; may be written without Spark.
        maintenance: what is small, and too many.
        column: that partitions the table.
        value: the partition's.

    Returns:
        how many files the table has now; None where nothing was done.
    """
    try:
        files = log.files(table)
        inside = pc.equal(files.column(f"partition.{column}").cast(pa.string()), value)
        small_ones = pc.and_(
            inside, pc.less(files.column("size_bytes"), maintenance.small_file_bytes)
        )
        if int(pc.sum(small_ones).as_py() or 0) < maintenance.small_files:
            return None
        # Up to the size that is no longer small, so that a record is not copied again and again.
        table.optimize.compact(
            partition_filters=[(column, "=", value)],
            target_size=maintenance.small_file_bytes,
            max_concurrent_tasks=1,
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except Exception as error:  # noqa: BLE001 - it may never fail the write that it follows
        logger.warning("small files not joined location=%s error=%s", table.table_uri, error)
        return None
    count = int(log.files(table).num_rows)
    logger.info("small files joined location=%s files=%d", table.table_uri, count)
    return count


def _join(
    location: str, maintenance: MaintenanceSettings, spark: Callable[[], SparkSession]
) -> int:
    table = plain.open_for_rewriting(location)
    if table is None:
        session = spark()
        with session_values(session, {_SMALL: str(maintenance.small_file_bytes)}):
            session.sql(f"OPTIMIZE delta.{quoted(location)}").collect()
    else:
        # One task and one try, like every write without Spark: see ``arrow_tables``.
        table.optimize.compact(
            max_concurrent_tasks=1, commit_properties=CommitProperties(max_commit_retries=0)
        )
    files = log.size(location).files
    logger.info("small files joined location=%s files=%d", location, files)
    return files

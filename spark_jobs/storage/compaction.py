"""Compacts the small files of a table; only its writer may call this.

Not Delta's own auto-compaction: it counts small files in the memory of a process and forgets a
table without any. So it rewrites each table after the first commit of a process, and a table whose
files are a little larger than small ones after every merge. The commit is marked as changing no
data: change feeds, streams and refreshes skip it.
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
from spark_jobs.storage.arrow_tables import files_of
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.tables import session_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_SMALL = "spark.databricks.delta.optimize.minFileSize"


@usual_rights()
def join_small_files(
    location: str,
    maintenance: MaintenanceSettings,
    *,
    spark: Callable[[], SparkSession],
    here: bool = True,
    partition: tuple[str, str] | None = None,
) -> int | None:
    """Compact a table's small files if there are too many.

    The caller is the only writer, and its own write is committed already. So an error is logged,
    and the next write tries again.

    Args:
        location: of the table.
        maintenance: file size that counts as small, and the number that is too many.
        spark: opens a session, for tables that delta-rs does not rewrite.
        here: whether delta-rs may rewrite the table.
        partition: a partition column and one of its values, if only that partition was written.

    Returns:
        the number of files now; None if nothing was done.
    """
    few = maintenance.small_files
    most = policy.small_file_limit(few) if here else few
    try:
        if small_files(location, maintenance, partition) < most:
            return None
        if here and partition is None and (table := plain.open_for_rewriting(location)) is not None:
            # One task and no retry, as for all writes by delta-rs: see ``arrow_tables``.
            table.optimize.compact(
                max_concurrent_tasks=1,
                writer_properties=files_of(pa.schema(table.schema().to_arrow())),
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        else:
            _optimize(spark(), location, maintenance, partition)
        files = log.size(location).files
    except Exception as error:  # noqa: BLE001 - it may never fail the write that it follows
        logger.warning("small files not joined location=%s error=%s", location, error)
        return None
    logger.info("small files joined location=%s files=%d", location, files)
    return files


def small_files(
    location: str, maintenance: MaintenanceSettings, partition: tuple[str, str] | None = None
) -> int:
    """The number of small files; 0 if there is no table.

    In a partitioned table, one small file of each partition is not counted: no compaction joins it.

    Args:
        location: of the table.
        maintenance: file size that counts as small.
        partition: a partition column and one of its values: only files of that partition.
    """
    table = log.open_table(location)
    if table is None:
        return 0
    small = _small(log.files(table), maintenance, partition)
    if partition is not None:
        return int(small.num_rows)
    columns = [name for name in small.column_names if name.startswith("partition.")]
    alone = small.group_by(columns).aggregate([]).num_rows if columns else 0
    return int(small.num_rows - alone)


@usual_rights()
def join_partition(
    table: DeltaTable, maintenance: MaintenanceSettings, *, column: str, value: str
) -> int | None:
    """Compact the small files of one partition if there are too many, without Spark.

    The caller is the only writer, and its own write is committed already. So an error is logged,
    and the next write tries again.

    Args:
        table: at its newest version, writable by delta-rs.
        maintenance: file size that counts as small, and the number that is too many.
        column: the partition column.
        value: the partition's value.

    Returns:
        the table's number of files now; None if nothing was done.
    """
    try:
        small = _small(log.files(table), maintenance, (column, value))
        if small.num_rows < maintenance.small_files:
            return None
        # Target the smallest size that is not small, so that records are not copied repeatedly.
        table.optimize.compact(
            partition_filters=[(column, "=", value)],
            target_size=maintenance.small_file_bytes,
            max_concurrent_tasks=1,
            writer_properties=files_of(pa.schema(table.schema().to_arrow())),
            commit_properties=CommitProperties(max_commit_retries=0),
        )
    except Exception as error:  # noqa: BLE001 - it may never fail the write that it follows
        logger.warning("small files not joined location=%s error=%s", table.table_uri, error)
        return None
    count = int(log.files(table).num_rows)
    logger.info("small files joined location=%s files=%d", table.table_uri, count)
    return count


def _small(
    files: pa.Table, maintenance: MaintenanceSettings, partition: tuple[str, str] | None
) -> pa.Table:
    """The small ones of ``log.files``, of one partition if it is given."""
    small = files.filter(pc.less(files.column("size_bytes"), maintenance.small_file_bytes))
    if partition is None:
        return small
    column, value = partition
    return small.filter(pc.equal(small.column(f"partition.{column}").cast(pa.string()), value))


def _optimize(
    session: SparkSession,
    location: str,
    maintenance: MaintenanceSettings,
    partition: tuple[str, str] | None,
) -> None:
    where = "" if partition is None else " WHERE {} = {!r}".format(*partition)
    with session_values(session, {_SMALL: str(maintenance.small_file_bytes)}):
        session.sql(f"OPTIMIZE delta.{quoted(location)}{where}").collect()

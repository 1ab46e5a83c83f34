"""Gives a table the layout that its declaration asks for: partitions, or liquid clustering.

Partition columns can change only when the table is rewritten. Clustering columns are metadata;
OPTIMIZE then arranges the files. delta-rs refuses to write clustered tables, so ``writer`` leaves
them to Spark. An overwrite with Spark removes the clustering columns, so they are set again after
each write.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from spark_jobs.storage import log
from spark_jobs.storage.columns import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FEATURE: Final = "clustering"
_SET: Final = "CLUSTER BY"
_OPTIMIZE: Final = "OPTIMIZE"

logger = logging.getLogger(__name__)


class _Declared(Protocol):
    @property
    def partition_by(self) -> tuple[str, ...]: ...
    @property
    def cluster_by(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Layout:
    """How the rows of a table are distributed over its files; at most one of the two is set."""

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()

    @classmethod
    def of(cls, declared: _Declared) -> Layout:
        """The layout that a declaration asks for."""
        return cls(declared.partition_by, declared.cluster_by)


def partition_columns(location: str) -> tuple[str, ...]:
    """The partition columns of a table; () if it has none or does not exist."""
    table = log.open_table(location)
    return () if table is None else tuple(table.metadata().partition_columns)


def clusterable(location: str) -> bool:
    """Whether a table has Delta's clustering feature, even if no column is set now."""
    table = log.open_table(location)
    return table is not None and _FEATURE in (table.protocol().writer_features or ())


def clustering_columns(location: str, spark: Callable[[], SparkSession]) -> tuple[str, ...]:
    """The columns that OPTIMIZE clusters by; opens a session only if the table has the feature."""
    if not clusterable(location):
        return ()
    [detail] = spark().sql(f"DESCRIBE DETAIL delta.{quoted(location)}").collect()
    return tuple(detail["clusteringColumns"])


def set_clustering(location: str, layout: Layout, spark: Callable[[], SparkSession]) -> bool:
    """Set the clustering columns of a table, in one commit without files.

    The caller is the table's only writer. Partitions are not changed.

    Args:
        location: of the table.
        layout: as declared.
        spark: opens a session; not called if the table neither is nor will be clustered.

    Returns:
        whether there was anything to change.
    """
    # First, as it reads the log once for a table without a layout, which most tables are.
    if clustering_columns(location, spark) == layout.cluster_by:
        return False
    if log.table_version(location) is None or partition_columns(location):
        return False
    columns = ", ".join(map(quoted, layout.cluster_by))
    wanted = f"({columns})" if columns else "NONE"
    spark().sql(f"ALTER TABLE delta.{quoted(location)} CLUSTER BY {wanted}").collect()
    logger.info("clustering set location=%s columns=%s", location, columns)
    return True


def cluster_files(location: str, spark: Callable[[], SparkSession]) -> bool:
    """Arrange the files of a clustered table by its columns; the caller is its only writer.

    Delta arranges only new files, unless the columns have changed since the last time: then it
    arranges all of them.

    Returns:
        whether files were written.
    """
    operations = [one.operation for one in log.commits(location)]
    if not operations or operations[0] == _OPTIMIZE:
        return False
    since = operations[: operations.index(_OPTIMIZE)] if _OPTIMIZE in operations else operations
    everything = " FULL" if _SET in since else ""
    before = log.table_version(location)
    spark().sql(f"OPTIMIZE delta.{quoted(location)}{everything}").collect()
    return log.table_version(location) != before

"""The one writer: rows are appended to a table, replace it, are merged into it or change it.

Each call is one commit, with the identity of the write and what it says about itself. Spark needs
as many jobs for ten rows as for a million; so few rows, in tables that delta-rs can write, are
written in this process. Nobody else decides about that, and nobody has to know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from spark_jobs.graph.type_agreement import keyed
from spark_jobs.names import TableVersion
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.storage import arrow_tables, log, plain, policy, tables
from spark_jobs.storage.columns import ColumnSpec
from spark_jobs.storage.compaction import join_partition, join_small_files
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.rows import Merge, RowChange, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Joining:
    """How a stream's table is kept in few files: Delta joins them after Spark's commits only.

    Attributes:
        maintenance: what is small, and too many.
        partition: the column that partitions the table, and the partition that was written.
    """

    maintenance: MaintenanceSettings
    partition: tuple[str, str] | None = None


def append(
    rows: Rows,
    location: str,
    *,
    txn: Txn | None = None,
    metadata: Mapping[str, Any] | None = None,
    after: int | None = None,
    joining: Joining | None = None,
) -> None:
    """Add rows to a table.

    Args:
        rows: of the table's columns.
        location: of the table.
        txn: the identity of the write; without, ``metadata`` tells it from others.
        metadata: what the commit says about itself.
        after: the version that the rows must follow.
        joining: for a table that nobody else writes meanwhile.

    Raises:
        TableMovedError: somebody else committed at the same moment, or after that version.
    """
    table = _open_to_append(rows, location)
    few = None if table is None else rows.few
    if table is None or few is None:
        tables.append(rows.frame, location, txn=txn, metadata=metadata)
        if after is not None:
            _check_follows(location, after, metadata)
        return
    if after is not None and table.version() != after:
        raise TableMovedError(location, f"It is at version {table.version()}, not at {after}.")
    arrow_tables.append(table, few, txn=txn, metadata=metadata)
    _join(table, location, rows, joining)


def replace(
    rows: Rows,
    location: str,
    *,
    txn: Txn | None = None,
    metadata: Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
    partition_by: Sequence[str] = (),
    comments: Mapping[str, str | None] | None = None,
) -> None:
    """Replace rows and columns of a table; creates it where there is none.

    Args:
        rows: of the table.
        location: of the table.
        txn: the identity of the write, where many rows are written; few are always written.
        metadata: what the commit says about itself.
        properties: of the table, beside a log that is condensed often where the rows are few.
        partition_by: columns by which many rows are divided into files; few need one file.
        comments: the columns' descriptions, by name, where the rows do not carry them.

    Raises:
        TableMovedError: somebody else committed at the same moment.
    """
    few = rows.few
    if few is not None:
        arrow_tables.replace(few, location, metadata=metadata or {}, comments=comments)
        return
    tables.overwrite(
        rows.frame,
        location,
        txn=txn,
        metadata=metadata,
        properties=properties,
        partition_by=partition_by,
    )


def merge(
    rows: Rows, location: str, how: Merge, *, txn: Txn, joining: Joining | None = None
) -> None:
    """Merge rows into a table by key, once.

    Args:
        rows: the table's columns and those that conditions read; at most one row has a key.
        location: of the table.
        how: which rows to update, insert and delete.
        txn: the identity of the write.
        joining: for a table that nobody else writes meanwhile.

    Raises:
        TableMovedError: somebody else committed at the same moment.
    """
    table = _open_to_merge(rows, location, how)
    few = None if table is None else rows.few
    if table is None or few is None:
        tables.merge(rows.frame, location, how, txn=txn)
        return
    arrow_tables.merge(table, few, how, txn=txn)
    _join(table, location, rows, joining)


def change(
    rows: RowChange,
    location: str,
    *,
    seen: TableVersion | None,
    txn: Txn,
    metadata: Mapping[str, Any],
) -> None:
    """Delete rows and insert rows; a change without rows is a commit too.

    Args:
        rows: to delete and to insert.
        location: of the table.
        seen: the table's version that the change was made for.
        txn: the identity of the write.
        metadata: what the commit says about itself.

    Raises:
        TableMovedError: the table is at another version.
    """
    count = None if rows.deletes is None or rows.inserts is None else rows.deletes + rows.inserts
    fits = policy.RESULT.fits(rows=count)
    table = arrow_tables.open_for_change(location, rows.kinds, rows.key) if fits else None
    if table is None:
        _change_by_spark(rows, location, txn, metadata)
        return
    if seen is None or seen.version != table.version():
        raise TableMovedError(location, f"It is at version {table.version()}, not at {seen}.")
    deleted = rows.deleted.table if rows.deletes else None
    inserted = rows.inserted.table if rows.inserts else None
    arrow_tables.change(
        table, deleted=deleted, inserted=inserted, key=rows.key, txn=txn, metadata=metadata
    )


def delete(
    spark: SparkSession, location: str, condition: str, *, txn: Txn, metadata: Mapping[str, Any]
) -> None:
    """Delete the rows of a condition, in Spark SQL."""
    tables.delete_rows(spark, location, condition, txn=txn, metadata=metadata)


def empty_values(
    places: DataFrame,
    location: str,
    columns: Sequence[str],
    *,
    by: Sequence[str],
    metadata: Mapping[str, Any],
) -> None:
    """Set values of some rows of a table to NULL; see ``tables.empty_values``."""
    tables.empty_values(places, location, columns, by=by, metadata=metadata)


def add_columns(spark: SparkSession, location: str, columns: Sequence[ColumnSpec]) -> None:
    """Add columns to a table; they are NULL in the rows that it has."""
    tables.add_columns(spark, location, columns)


def _open_to_append(rows: Rows, location: str) -> DeltaTable | None:
    """The table as it is now, of any size, if the rows may be added in this process."""
    if not rows.local:
        return None
    return _with_columns(plain.open_for_adding(location), rows.columns)


def _open_to_merge(rows: Rows, location: str, how: Merge) -> DeltaTable | None:
    if how.delete_others is not None or not rows.local:
        return None
    kinds = rows.kinds
    # Of rows that are here, the keys were looked up.
    if kinds is not None and not keyed(kinds[key] for key in how.keys):
        return None
    return _with_columns(plain.open_for_rewriting(location), how.columns)


def _with_columns(table: DeltaTable | None, columns: Sequence[str]) -> DeltaTable | None:
    """The table, where it has these columns only: Spark fills others with NULL."""
    if table is None or {field.name for field in table.schema().fields} != set(columns):
        return None
    return table


def _join(table: DeltaTable, location: str, rows: Rows, joining: Joining | None) -> None:
    if joining is None:
        return
    if joining.partition is None:
        join_small_files(location, joining.maintenance, spark=lambda: rows.frame.sparkSession)
        return
    column, value = joining.partition
    join_partition(table, joining.maintenance, column=column, value=value)


def _check_follows(location: str, after: int, metadata: Mapping[str, Any] | None) -> None:
    """Look whether Spark's commit came right after a version; Delta adds rows after any.

    Raises:
        TableMovedError: another commit is there.
    """
    commit = log.commit(location, after + 1)
    if commit is None or commit.metadata != dict(metadata or {}):
        raise TableMovedError(location, "another refresh wrote to it")


def _change_by_spark(rows: RowChange, location: str, txn: Txn, metadata: Mapping[str, Any]) -> None:
    inserted = rows.inserted.frame
    if rows.deletes != 0:
        tables.merge_rows(
            inserted.sparkSession,
            location,
            deleted=rows.deleted.frame,
            inserted=inserted,
            key=rows.key,
            txn=txn,
            metadata=metadata,
        )
        return
    # Without any row it is a commit without files: the watermark moves, readers of the change
    # feed see nothing.
    some = inserted if rows.inserts else inserted.limit(0)
    tables.append(some, location, txn=txn, metadata=metadata)

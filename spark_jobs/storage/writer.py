"""The only writer of tables: append, replace, merge, change.

Each call is one commit, with a transaction id and user metadata. Spark needs as many jobs for ten
rows as for a million, so delta-rs writes few rows, if it supports the table. Only this module
chooses between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.graph.type_agreement import compared, moved
from spark_jobs.names import TableVersion
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.storage import arrow_tables, log, plain, policy, tables
from spark_jobs.storage.columns import ColumnSpec
from spark_jobs.storage.commits import commit
from spark_jobs.storage.compaction import join_partition, join_small_files
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.history import rows_changed
from spark_jobs.storage.key_ranges import whole_keys
from spark_jobs.storage.layout import partition_columns
from spark_jobs.storage.rows import Merge, RowChange, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Joining:
    """How a stream's table is compacted after a write.

    Attributes:
        maintenance: file size that counts as small, and the number that is too many.
        partition: the partition column, and the value that was written.
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
    """Append rows to a table.

    Args:
        rows: with the table's columns.
        location: of the table.
        txn: identity of the write; None: ``metadata`` identifies it.
        metadata: user metadata of the commit.
        after: version that the commit must follow directly.
        joining: compact afterwards; the caller must be the only writer.

    Raises:
        TableMovedError: another writer committed at the same time, or after that version.
    """
    table = _open_to_append(rows, location)
    few = None if table is None else rows.few
    if table is None or few is None:
        tables.append(rows.frame, location, txn=txn, metadata=metadata)
        if after is not None:
            _check_follows(location, after, metadata)
        _join(None, location, rows, joining)
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
    partition_by: Sequence[str] | None = None,
    comments: Mapping[str, str | None] | None = None,
) -> None:
    """Replace rows and columns of a table; creates it if it does not exist.

    Args:
        rows: the new content.
        location: of the table.
        txn: identity of the write. Ignored if there are few rows: these are always written.
        metadata: user metadata of the commit.
        properties: table properties; tables of few rows also get frequent log checkpoints.
        partition_by: partition columns, if there are many rows; None: those that the table has.
        comments: column comments by name, if the rows do not carry them.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    here = plain.writable(location) and not _reordered(location, rows.columns)
    few = rows.few if here else None
    if few is not None:
        arrow_tables.replace(
            few, location, metadata=metadata or {}, properties=properties, comments=comments
        )
        return
    tables.overwrite(
        rows.frame,
        location,
        txn=txn,
        metadata=metadata,
        properties=properties,
        partition_by=partition_columns(location) if partition_by is None else partition_by,
    )


def merge(
    rows: Rows, location: str, how: Merge, *, txn: Txn, joining: Joining | None = None
) -> None:
    """Merge rows into a table by key, once.

    Args:
        rows: the table's columns and those that conditions read; keys are unique.
        location: of the table.
        how: conditions to update, insert and delete.
        txn: identity of the write.
        joining: compact afterwards; the caller must be the only writer.

    Raises:
        TableMovedError: another writer committed at the same time.
    """
    table = _open_to_merge(rows, location, how)
    few = None if table is None else rows.few
    if table is None or few is None:
        tables.merge(rows.frame, location, how, txn=txn)
        _join(None, location, rows, joining)
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
    """Delete and insert rows; a change without rows is committed too.

    Args:
        rows: rows to delete and to insert.
        location: of the table.
        seen: version of the table that the change was computed for.
        txn: identity of the write.
        metadata: user metadata of the commit.

    Raises:
        TableMovedError: the table is at another version; for a change by Spark, one with other
            rows.
    """
    count = None if rows.deletes is None or rows.inserts is None else rows.deletes + rows.inserts
    fits = policy.RESULT.fits(rows=count)
    spelling = _spelling(location)
    table = _open_to_change(rows, location, spelling) if fits else None
    if table is None:
        _check_same_rows(location, seen)
        _change_by_spark(rows, location, txn, metadata)
        return
    if seen is None or seen.version != table.version():
        raise TableMovedError(location, f"It is at version {table.version()}, not at {seen}.")
    deleted = _spelled(rows.deleted.table, spelling) if rows.deletes else None
    inserted = _spelled(rows.inserted.table, spelling) if rows.inserts else None
    arrow_tables.change(
        table, deleted=deleted, inserted=inserted, step=rows.step, txn=txn, metadata=metadata
    )


def delete(
    spark: SparkSession, location: str, condition: str, *, txn: Txn, metadata: Mapping[str, Any]
) -> None:
    """Delete the rows that match a Spark SQL condition."""
    tables.delete_rows(spark, location, condition, txn=txn, metadata=metadata)


def empty_values(
    places: DataFrame,
    location: str,
    columns: Sequence[str],
    *,
    by: Sequence[str],
    metadata: Mapping[str, Any],
) -> None:
    """Set values of some rows to NULL; see ``tables.empty_values``."""
    tables.empty_values(places, location, columns, by=by, metadata=metadata)


def add_columns(spark: SparkSession, location: str, columns: Sequence[ColumnSpec]) -> None:
    """Add columns to a table; existing rows have NULL there."""
    tables.add_columns(spark, location, columns)


def rewrite(spark: SparkSession, location: str) -> None:
    """Write all files of a table again with Spark; readers see no change."""
    tables.rewrite(spark, location)


def _open_to_append(rows: Rows, location: str) -> DeltaTable | None:
    """The table at its newest version if this process may append the rows; else None."""
    if not rows.local:
        return None
    return _with_columns(plain.open_for_adding(location), rows.columns)


def _open_to_merge(rows: Rows, location: str, how: Merge) -> DeltaTable | None:
    if how.delete_others is not None or not rows.local:
        return None
    kinds = rows.kinds
    # The keys of Arrow rows were looked up before, so their types are supported.
    if kinds is not None and not compared(kinds[key] for key in how.keys):
        return None

    def keys() -> pa.Table | None:
        return None if rows.few is None else whole_keys(rows.few, how.keys)

    return _with_columns(plain.open_for_rewriting(location, keys), how.columns)


def _open_to_change(
    rows: RowChange, location: str, spelling: Mapping[str, str]
) -> DeltaTable | None:
    if rows.deletes == 0:
        return plain.open_for_adding(location) if moved(rows.kinds.values()) else None
    return arrow_tables.open_for_change(
        location,
        {spelling.get(name.lower(), name): kind for name, kind in rows.kinds.items()},
        rows.step,
        deleted=lambda: _spelled(rows.deleted.table, spelling),
    )


def _spelling(location: str) -> dict[str, str]:
    """The table's column names by their lower case; engines do not always keep the case."""
    return {one.name.lower(): one.name for one in log.schema(location)}


def _spelled(rows: pa.Table, spelling: Mapping[str, str]) -> pa.Table:
    """Rows with the table's spelling of the column names."""
    return rows.rename_columns([spelling.get(one.lower(), one) for one in rows.column_names])


def _reordered(location: str, columns: Sequence[str]) -> bool:
    """Whether a table has these columns in another order, which delta-rs would not change."""
    table = log.open_table(location)
    held = [] if table is None else [field.name for field in table.schema().fields]
    return held != list(columns) and sorted(held) == sorted(columns)


def _with_columns(table: DeltaTable | None, columns: Sequence[str]) -> DeltaTable | None:
    """The table if it has exactly these columns: Spark fills in missing ones with NULL."""
    if table is None or {field.name for field in table.schema().fields} != set(columns):
        return None
    return table


def _join(table: DeltaTable | None, location: str, rows: Rows, joining: Joining | None) -> None:
    """Compact the table if it has too many small files, by what wrote it.

    Args:
        table: at its newest version, if delta-rs wrote it; None: Spark did.
        location: of the table.
        rows: that were written.
        joining: how; None: not at all.
    """
    if joining is None:
        return
    if table is not None and joining.partition is not None:
        column, value = joining.partition
        join_partition(table, joining.maintenance, column=column, value=value)
        return
    join_small_files(
        location,
        joining.maintenance,
        spark=lambda: rows.frame.sparkSession,
        here=table is not None,
        partition=joining.partition,
    )


def _check_follows(location: str, after: int, metadata: Mapping[str, Any] | None) -> None:
    """Check that Spark's commit directly follows a version; Delta itself appends after any.

    Raises:
        TableMovedError: another commit came in between.
    """
    found = commit(location, after + 1)
    if found is None or found.metadata != dict(metadata or {}):
        raise TableMovedError(location, "another refresh wrote to it")


def _check_same_rows(location: str, seen: TableVersion | None) -> None:
    """Check that a table has the rows of a version: Spark's MERGE reads the newest.

    Raises:
        TableMovedError: it has others.
    """
    now = log.table_version(location)
    if (
        seen is None
        or now is None
        or now.table_id != seen.table_id
        or rows_changed(location, after=seen.version, upto=now.version)
    ):
        raise TableMovedError(location, f"It is at version {now}, not at {seen}.")


def _change_by_spark(rows: RowChange, location: str, txn: Txn, metadata: Mapping[str, Any]) -> None:
    inserted = rows.inserted.frame
    if rows.deletes != 0:
        tables.merge_rows(
            inserted.sparkSession,
            location,
            deleted=rows.deleted.frame,
            inserted=inserted,
            step=rows.step,
            txn=txn,
            metadata=metadata,
        )
        return
    # Without rows the commit has no files: the watermark advances, and the change feed is empty.
    some = inserted if rows.inserts else inserted.limit(0)
    tables.append(some, location, txn=txn, metadata=metadata)

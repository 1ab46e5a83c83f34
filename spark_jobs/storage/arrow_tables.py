"""Writes Delta tables from this process with delta-rs, for ``writer``.

Spark needs as many jobs for ten rows as for a million. These functions only write rows; they do not
validate them. Each write is one commit without retries: a commit that another writer made first may
contain rows that the caller has not seen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from deltalake import (
    ColumnProperties,
    CommitProperties,
    DeltaTable,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import CommitFailedError

from spark_jobs.graph.last_step import RowStep, matched_columns
from spark_jobs.graph.type_agreement import bounded, compared, moved
from spark_jobs.storage.columns import comment
from spark_jobs.storage.delta import CHANGE_FEED, FLAG, SHORT_LOG, Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.key_ranges import ranges_of, whole_keys
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.plain import open_for_rewriting
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.rows import Merge


@usual_rights()
def create(
    rows: pa.Table, location: str, *, comments: Mapping[str, str | None] | None = None
) -> DeltaTable:
    """Create a table with a change feed, rows and column comments.

    Args:
        rows: the content; may be empty.
        location: where there is no table yet.
        comments: column comments, by name.
    """
    described = rows if comments is None else _described(rows, comments)
    write_deltalake(
        plain_location(location),
        described,
        mode="error",
        configuration=dict(CHANGE_FEED),
        writer_properties=files_of(described.schema),
    )
    return DeltaTable(plain_location(location))


@usual_rights()
def replace(
    rows: pa.Table,
    location: str,
    *,
    metadata: Mapping[str, Any],
    properties: Mapping[str, str] | None = None,
    comments: Mapping[str, str | None] | None = None,
) -> None:
    """Replace rows and columns of a table in one commit; creates it if it does not exist.

    Args:
        rows: the new content.
        location: of the table.
        metadata: user metadata of the commit.
        properties: table properties, in addition to frequent log checkpoints.
        comments: column comments, by name.

    Raises:
        TableMovedError: another writer committed at the same time; nothing was written.
    """
    with _unmoved(location):
        write_deltalake(
            plain_location(location),
            _described(rows, comments or {}),
            mode="overwrite",
            schema_mode="overwrite",
            configuration={**SHORT_LOG, **(properties or {})},
            commit_properties=_commit(metadata),
            writer_properties=files_of(rows.schema),
        )


@usual_rights()
def append(
    table: DeltaTable,
    rows: pa.Table,
    *,
    txn: Txn | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Append rows on top of the table's version, unless the transaction was committed before.

    Args:
        table: at its newest version.
        rows: with the table's columns.
        txn: identity of the write.
        metadata: user metadata of the commit.

    Raises:
        TableMovedError: another writer committed first; nothing was written.
    """
    if _committed(table, txn):
        return
    columns = pa.schema(table.schema().to_arrow())
    rows = _in_columns(rows, columns)
    with _unmoved(table.table_uri):
        _append(table, rows, _commit(metadata, txn))


def open_for_change(
    location: str,
    kinds: Mapping[str, str],
    step: RowStep,
    *,
    deleted: Callable[[], pa.Table | None] = lambda: None,
) -> DeltaTable | None:
    """The table at its newest version if ``change`` can write to it; otherwise None.

    Args:
        location: of the table.
        kinds: Spark SQL types of the rows' columns.
        step: how a row to delete is found in the table.
        deleted: returns the rows to delete; None: any.
    """
    matched = matched_columns(step, kinds)
    if not moved(kinds.values()) or not compared(kinds[one] for one in matched):
        return None

    def keys() -> pa.Table | None:
        found = deleted()
        return None if found is None else whole_keys(found, matched)

    return open_for_rewriting(location, keys)


@usual_rights()
def change(
    table: DeltaTable,
    *,
    deleted: pa.Table | None,
    inserted: pa.Table | None,
    step: RowStep,
    txn: Txn,
    metadata: Mapping[str, Any],
) -> None:
    """Delete and insert rows in one commit, unless the transaction was committed before.

    Args:
        table: as ``open_for_change`` returned it.
        deleted: rows to delete, each once; all copies in the table are deleted. None: none.
        inserted: rows to insert. None: none.
        step: how a row to delete is found in the table.
        txn: identity of the write.
        metadata: user metadata of the commit.

    Raises:
        TableMovedError: another writer committed first; nothing was written.
    """
    if _committed(table, txn):
        return
    commit = _commit(metadata, txn)
    columns = pa.schema(table.schema().to_arrow())
    inserted = _in_columns(inserted, columns)
    with _unmoved(table.table_uri):
        if deleted is None or not deleted.num_rows:
            _append(table, inserted, commit)
            return
        deleted = _in_columns(deleted, columns)
        flags = [True] * deleted.num_rows + [False] * inserted.num_rows
        source = pa.concat_tables([deleted, inserted]).append_column(FLAG, [flags])
        matched = matched_columns(step, columns.names)
        same = [f"(t.{_name(one)} IS NOT DISTINCT FROM s.{_name(one)})" for one in matched]
        table.merge(
            source,
            " AND ".join([f"s.{FLAG}", *same, *_near(deleted, matched)]),
            source_alias="s",
            target_alias="t",
            commit_properties=commit,
            writer_properties=files_of(columns),
        ).when_matched_delete().when_not_matched_insert(
            {_name(one): f"s.{_name(one)}" for one in columns.names},
            predicate=f"NOT s.{FLAG}",
        ).execute()


@usual_rights()
def merge(table: DeltaTable, rows: pa.Table, how: Merge, *, txn: Txn) -> None:
    """Merge rows in one commit on top of the table's version, unless committed before.

    Args:
        table: at its newest version.
        rows: the table's columns and those that conditions read; keys are unique.
        how: conditions to update, insert and delete; a row is deleted only if a source row has its
            key.
        txn: identity of the write.

    Raises:
        TableMovedError: another writer committed first; nothing was written.
    """
    if _committed(table, txn):
        return
    columns = pa.schema(table.schema().to_arrow())
    rows = rows.cast(
        pa.schema(
            [columns.field(one.name) if one.name in columns.names else one for one in rows.schema]
        )
    )
    values = {_name(name): f"s.{_name(name)}" for name in how.columns}
    kinds = [columns.field(key).type for key in how.keys]
    merger = table.merge(
        rows,
        " AND ".join([*map(_same, how.keys, kinds), *_near(rows, how.keys)]),
        source_alias="s",
        target_alias="t",
        # Otherwise delta-rs skips files by their key statistics, which must be exact.
        streamed_exec=not bounded(kinds),
        commit_properties=_commit(txn=txn),
        writer_properties=files_of(columns),
    )
    if how.delete:
        merger = merger.when_matched_delete(how.delete)
    merger = merger.when_matched_update(values, how.update)
    with _unmoved(table.table_uri):
        merger.when_not_matched_insert(values, how.insert).execute()


def _append(table: DeltaTable, rows: pa.Table, commit: CommitProperties) -> None:
    properties = files_of(rows.schema)
    write_deltalake(
        table, rows, mode="append", commit_properties=commit, writer_properties=properties
    )


def files_of(schema: pa.Schema) -> WriterProperties:
    """How files are written: without statistics of floating-point numbers.

    delta-rs leaves NaN out of them, for Spark it is the largest number: a filter would skip the
    file. Columns within others cannot be named, so that none of theirs are kept either.
    """
    without = ColumnProperties(statistics_enabled="NONE")
    floats = {one.name: without for one in schema if pa.types.is_floating(one.type)}
    if not any(_holds_floats(one.type) for one in schema):
        return WriterProperties(compression="SNAPPY", column_properties=floats or None)
    plain = [one.name for one in schema if not pa.types.is_nested(one.type)]
    kept = dict.fromkeys(plain, ColumnProperties(statistics_enabled="PAGE"))
    return WriterProperties(
        compression="SNAPPY",
        default_column_properties=without,
        column_properties={**kept, **floats},
    )


def _holds_floats(kind: pa.DataType) -> bool:
    """Whether a nested type has floating-point numbers in it."""
    if not pa.types.is_nested(kind):
        return False
    inner = [kind.field(at).type for at in range(kind.num_fields)]
    return any(pa.types.is_floating(one) or _holds_floats(one) for one in inner)


def _described(rows: pa.Table, comments: Mapping[str, str | None]) -> pa.Table:
    columns = [
        pa.field(one.name, one.type, metadata=comment(comments.get(one.name)))
        for one in rows.schema
    ]
    return rows.cast(pa.schema(columns))


def _in_columns(rows: pa.Table | None, columns: pa.Schema) -> pa.Table:
    return columns.empty_table() if rows is None else rows.select(columns.names).cast(columns)


@contextmanager
def _unmoved(location: str) -> Iterator[None]:
    """Turn a conflict with another commit into ``TableMovedError``.

    Raises:
        TableMovedError: another writer committed first; nothing was written.
    """
    try:
        yield
    except CommitFailedError as error:
        raise TableMovedError(location, str(error)) from error


def _committed(table: DeltaTable, txn: Txn | None) -> bool:
    """Whether the transaction was committed, by Delta's rule: versions of an app id only grow."""
    last = None if txn is None else table.transaction_version(txn.app_id)
    return txn is not None and last is not None and last >= txn.version


def _same(key: str, kind: pa.DataType) -> str:
    """The condition that a key column is equal in the target and the source."""
    sides = [f"{alias}.{_name(key)}" for alias in ("t", "s")]
    if pa.types.is_timestamp(kind):
        # As a number: the log's statistics of times are truncated, and must not skip files.
        sides = [f"CAST({side} AS BIGINT)" for side in sides]
    return " = ".join(sides)


def _near(rows: pa.Table, keys: Iterable[str]) -> Iterator[str]:
    """Conditions on the target that let delta-rs skip files without any of the rows' keys.

    It derives no such condition from a null-safe comparison, and from ``=`` only one from the
    lowest key to the highest.
    """
    found = whole_keys(rows, keys)
    for key in found.column_names:
        ranges = ranges_of(found.column(key)) or ()
        inside = [f"t.{_name(key)} BETWEEN {low} AND {high}" for low, high in ranges]
        if inside:
            yield f"({' OR '.join(inside)})"


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _commit(metadata: Mapping[str, Any] | None = None, txn: Txn | None = None) -> CommitProperties:
    text = None if metadata is None else json.dumps(metadata, sort_keys=True, default=str)
    return CommitProperties(
        custom_metadata=None if text is None else {"userMetadata": text},
        max_commit_retries=0,
        app_transactions=None if txn is None else [Transaction(txn.app_id, txn.version)],
    )

"""A few rows of a table by their keys, without Spark: looked up, merged, appended once.

A batch of few rows pays Spark mostly for reading a table's log, for shuffling rows that stay as
they are, and for reading the new version back. Here delta-rs does it; what a row is, and which one
counts, was decided before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.storage import log, policy
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.plain import plain_table
from spark_jobs.storage.rights import usual_rights
from spark_jobs.storage.streams import Merge
from spark_jobs.storage.tables import Txn

# Types whose values are alike in Spark, Arrow and DataFusion, and in the files of any writer.
_LOOKED_UP = re.compile(
    r"tinyint|smallint|int|bigint|boolean|string|binary|date|decimal\(\d+,\d+\)"
)
# Types whose bounds a log keeps exactly, or wider than the values; those of times are cut to
# milliseconds, and those of decimals may pass through floating point.
_BOUNDED = (pa.types.is_integer, pa.types.is_date)


def can_look_up(kinds: Iterable[str]) -> bool:
    """Whether keys of these types of Spark's can be looked up.

    >>> can_look_up(["bigint", "decimal(12,2)"]), can_look_up(["double"])
    (True, False)
    """
    return all(_LOOKED_UP.fullmatch(one) for one in kinds)


def rows_with_keys(location: str, keys: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """The rows of a table as it is now that have one of some keys, and maybe others.

    Args:
        location: of the table.
        keys: one column for each of the key, of types that can be looked up.
        columns: what is read of each row.

    Returns:
        None where the table's files are not its rows, or many rows have the keys.
    """
    plain = plain_table(location)
    if plain is None:
        return None
    table = DeltaTable(plain.location, version=plain.version)
    held = pa.schema(table.schema().to_arrow())
    values = {
        name: pc.unique(keys.column(name).cast(held.field(name).type)) for name in keys.column_names
    }
    schema = pa.schema([held.field(name) for name in dict.fromkeys([*columns, *values])])
    paths = _files_in_reach(table, values)
    if not paths or not keys.num_rows:
        return schema.empty_table().select(columns)
    files = PyFileSystem(DeltaStorageHandler(plain.location))
    dataset = pads.dataset(paths, schema=schema, format="parquet", filesystem=files)
    found, count = [], 0
    # Not by a filter of the scan: it compares a file's bounds, whose types differ with its writer.
    for batch in dataset.to_batches():
        asked_for = [pc.is_in(batch.column(name), one) for name, one in values.items()]
        found.append(batch.filter(reduce(pc.and_, asked_for)).select(columns))
        count += found[-1].num_rows
        if not policy.RESULT.fits(rows=count):
            return None
    return pa.Table.from_batches(found, schema.empty_table().select(columns).schema)


@usual_rights()
def append_once(table: DeltaTable, rows: pa.Table, *, txn: Txn) -> None:
    """Add rows in one commit right after a table's version, unless the transaction was committed.

    Args:
        table: as it is now.
        rows: of its columns.
        txn: the identity of the write.

    Raises:
        TableMovedError: somebody else committed first; nothing was written.
    """
    if _committed(table, txn):
        return
    columns = pa.schema(table.schema().to_arrow())
    try:
        write_deltalake(
            table,
            rows.select(columns.names).cast(columns),
            mode="append",
            commit_properties=_commit(txn),
        )
    except CommitFailedError as error:
        raise TableMovedError(table.table_uri, str(error)) from error


@usual_rights()
def merge_once(table: DeltaTable, rows: pa.Table, how: Merge, *, txn: Txn) -> None:
    """Merge rows in one commit right after a table's version, unless it was committed before.

    Args:
        table: as it is now.
        rows: its columns and those that conditions read; at most one row has a key.
        how: which rows to update, insert and delete; no row is deleted without one of its key.
        txn: the identity of the write.

    Raises:
        TableMovedError: somebody else committed first; nothing was written.
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
        " AND ".join(f"t.{_name(key)} = s.{_name(key)}" for key in how.keys),
        source_alias="s",
        target_alias="t",
        # Otherwise files are skipped by the bounds of their keys, which the log must tell exactly.
        streamed_exec=not all(any(is_kind(kind) for is_kind in _BOUNDED) for kind in kinds),
        commit_properties=_commit(txn),
    )
    if how.delete:
        merger = merger.when_matched_delete(how.delete)
    merger = merger.when_matched_update(values, how.update)
    try:
        merger.when_not_matched_insert(values, how.insert).execute()
    except CommitFailedError as error:
        raise TableMovedError(table.table_uri, str(error)) from error


def _files_in_reach(table: DeltaTable, values: dict[str, pa.Array]) -> list[str]:
    """The files that can have rows with these values, by the bounds that the log has."""
    actions = log.files(table)
    reach = pa.array([True] * actions.num_rows, pa.bool_())
    for name, found in values.items():
        low, high = f"min.{name}", f"max.{name}"
        bounded = any(is_kind(found.type) for is_kind in _BOUNDED)
        if not bounded or not {low, high} <= set(actions.column_names):
            continue
        ends = pc.min_max(found)
        # Without any value the log has no bounds, and no type of them.
        first, last = (actions.column(one).cast(found.type) for one in (low, high))
        inside = pc.and_(pc.less_equal(first, ends["max"]), pc.greater_equal(last, ends["min"]))
        reach = pc.and_(reach, pc.fill_null(inside, fill_value=True).combine_chunks())
    return list(actions.column("path").filter(reach).to_pylist())


def _committed(table: DeltaTable, txn: Txn) -> bool:
    """As Delta skips a transaction: by its number, in which those of one application only grow."""
    last = table.transaction_version(txn.app_id)
    return last is not None and last >= txn.version


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _commit(txn: Txn) -> CommitProperties:
    """One try: a commit that somebody else made first may hold rows that were not looked at."""
    return CommitProperties(
        max_commit_retries=0, app_transactions=[Transaction(txn.app_id, txn.version)]
    )

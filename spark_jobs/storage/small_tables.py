"""Small tables that are set to given rows; a commit contains only the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.storage import arrow_tables
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.rows import Merge

_DELETED: Final = "__goes"
_NAN: Final = object()


@dataclass(frozen=True)
class SyncResult:
    """What ``sync_rows`` changed.

    Attributes:
        version: the table's version now.
        replaced: whether the table was rewritten, because its columns or keys changed.
    """

    inserted: int
    updated: int
    deleted: int
    version: int
    replaced: bool = False


def sync_rows(
    rows: pa.Table,
    location: str,
    *,
    keys: Sequence[str],
    comments: Mapping[str, str | None],
    writer: str,
) -> SyncResult:
    """Make a table contain exactly these rows.

    Args:
        rows: few rows with unique keys.
        location: of the table, which is created if it does not exist.
        keys: columns that identify a row.
        comments: column comments, used if the table is rewritten.
        writer: app id of the transaction.

    Raises:
        TableMovedError: another writer committed at the same time; nothing was written.
    """
    if not DeltaTable.is_deltatable(location):
        arrow_tables.create(rows, location, comments=comments)
        return SyncResult(rows.num_rows, 0, 0, DeltaTable(location).version(), replaced=True)
    table = DeltaTable(location)
    held = table.to_pyarrow_table()
    was = _by_key(held, keys)
    # A table of other keys may repeat these, or have NULL in them, which matches no row.
    comparable = len(was) == held.num_rows and not any(None in key for key in was)
    if _kinds(held.schema) != _kinds(rows.schema) or not comparable:
        arrow_tables.replace(rows, location, metadata={}, comments=comments)
        return SyncResult(rows.num_rows, 0, 0, DeltaTable(location).version(), replaced=True)
    now = _by_key(rows, keys)
    inserted = [row for key, row in now.items() if key not in was]
    updated = [row for key, row in now.items() if key in was and not _same(was[key], row)]
    deleted = [row for key, row in was.items() if key not in now]
    if inserted or updated or deleted:
        marked = [{**row, _DELETED: False} for row in (*inserted, *updated)]
        marked += [{**row, _DELETED: True} for row in deleted]
        changed = pa.Table.from_pylist(marked, rows.schema.append(pa.field(_DELETED, pa.bool_())))
        how = Merge(
            keys=tuple(keys),
            columns=tuple(rows.column_names),
            update=f"NOT s.{_DELETED}",
            insert=f"NOT s.{_DELETED}",
            delete=f"s.{_DELETED}",
        )
        arrow_tables.merge(table, changed, how, txn=Txn(writer, table.version() + 1))
    version = DeltaTable(location).version()
    return SyncResult(len(inserted), len(updated), len(deleted), version)


def hold(rows: pa.Table, location: str, *, metadata: Mapping[str, Any]) -> None:
    """Replace a table's rows unless they are equal in any order; never creates an empty table.

    Args:
        rows: few rows of sortable values.
        location: of the table.
        metadata: user metadata of the commit.

    Raises:
        TableMovedError: another writer committed at the same time; nothing was written.
    """
    if DeltaTable.is_deltatable(location):
        was = DeltaTable(location).to_pyarrow_table().to_pylist()
        if sorted(map(_values, was)) == sorted(map(_values, rows.to_pylist())):
            return
    elif not rows.num_rows:
        return
    arrow_tables.replace(rows, location, metadata=metadata)


def _by_key(rows: pa.Table, keys: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(_comparable(row.get(one)) for one in keys): row for row in rows.to_pylist()}


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(_comparable(one) == _comparable(other))


def _comparable(value: Any) -> Any:
    """A value in which NaN is equal to itself, also within arrays and structs."""
    if isinstance(value, float) and isnan(value):
        return _NAN
    if isinstance(value, Mapping):
        return {name: _comparable(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_comparable(one) for one in value]
    return value


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {one.name: one.type for one in schema}


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())

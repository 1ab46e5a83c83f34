"""Small tables that are brought to given rows: a commit holds what differs, or is not made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.storage import arrow_tables
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.rows import Merge

_GOES: Final = "__goes"


@dataclass(frozen=True)
class Brought:
    """What bringing a table to its rows did.

    Attributes:
        version: of the table now.
        replaced: whether the whole table was written, because its columns or keys are others.
    """

    inserted: int
    updated: int
    deleted: int
    version: int
    replaced: bool = False


def bring_to(
    rows: pa.Table,
    location: str,
    *,
    keys: Sequence[str],
    comments: Mapping[str, str | None],
    writer: str,
) -> Brought:
    """Make a table hold these rows and no others.

    Args:
        rows: few; no two have the same key.
        location: of the table, which is created where there is none.
        keys: the columns that tell rows apart.
        comments: the columns' descriptions, for a table that is written whole.
        writer: who writes, for the identity of the commit.

    Raises:
        TableMovedError: somebody else committed at the same moment; nothing was written.
    """
    if not DeltaTable.is_deltatable(location):
        arrow_tables.create(rows, location, comments=comments)
        return Brought(rows.num_rows, 0, 0, DeltaTable(location).version(), replaced=True)
    table = DeltaTable(location)
    held = table.to_pyarrow_table()
    was = _by_key(held, keys)
    if _kinds(held.schema) != _kinds(rows.schema) or len(was) != held.num_rows:
        arrow_tables.replace(rows, location, metadata={}, comments=comments)
        return Brought(rows.num_rows, 0, 0, DeltaTable(location).version(), replaced=True)
    now = _by_key(rows, keys)
    inserted = [row for key, row in now.items() if key not in was]
    updated = [row for key, row in now.items() if key in was and was[key] != row]
    deleted = [row for key, row in was.items() if key not in now]
    if inserted or updated or deleted:
        marked = [{**row, _GOES: False} for row in (*inserted, *updated)]
        marked += [{**row, _GOES: True} for row in deleted]
        changed = pa.Table.from_pylist(marked, rows.schema.append(pa.field(_GOES, pa.bool_())))
        how = Merge(
            keys=tuple(keys),
            columns=tuple(rows.column_names),
            update=f"NOT s.{_GOES}",
            insert=f"NOT s.{_GOES}",
            delete=f"s.{_GOES}",
        )
        arrow_tables.merge(table, changed, how, txn=Txn(writer, table.version() + 1))
    version = DeltaTable(location).version()
    return Brought(len(inserted), len(updated), len(deleted), version)


def hold(rows: pa.Table, location: str, *, metadata: Mapping[str, Any]) -> None:
    """Make a table hold these rows, in any order; no commit where it does or there are none yet.

    Args:
        rows: few, of values that can be ordered.
        location: of the table.
        metadata: what the commit says about itself.
    """
    if DeltaTable.is_deltatable(location):
        was = DeltaTable(location).to_pyarrow_table().to_pylist()
        if sorted(map(_values, was)) == sorted(map(_values, rows.to_pylist())):
            return
    elif not rows.num_rows:
        return
    arrow_tables.replace(rows, location, metadata=metadata)


def _by_key(rows: pa.Table, keys: Sequence[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row.get(one) for one in keys): row for row in rows.to_pylist()}


def _kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {one.name: one.type for one in schema}


def _values(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())

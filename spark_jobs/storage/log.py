"""Reads Delta logs: versions, commits, transaction ids, schemas and sizes. No Spark.

delta-rs reads a log in milliseconds, also in an object store, with credentials from the usual
environment variables. A function that opens a table raises ``LogUnreadableError`` if its log
exists and cannot be read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from spark_jobs.names import TableVersion
from spark_jobs.storage.commits import Commit, commit, history
from spark_jobs.storage.errors import LogUnreadableError, TableMissingError
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.log_files import newest_version

_FEED = "delta.enableChangeDataFeed"
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
# Inode, modification time and length of a file.
_Stat = tuple[int, int, int]
# Size of the caches: table versions that a few concurrent refreshes use.
_KEPT = 64
# Type names that differ between Delta and Spark SQL.
_SPARK_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class _OfVersion(Protocol[_T_co]):
    def __call__(self, location: str, version: int | None = None) -> _T_co: ...


@dataclass(frozen=True)
class TableColumn:
    """A column in the log, with its Spark SQL type."""

    name: str
    type: str
    nullable: bool
    description: str | None


@dataclass(frozen=True)
class TableSize:
    """The size of a table version; ``rows`` is None if a file has no row count."""

    rows: int | None
    bytes: int
    files: int


def once_a_version(compute: Callable[[str, int | None], _T]) -> _OfVersion[_T]:
    """Cache a function of a table version: the content of a version never changes.

    Args:
        compute: called with a location and a version, or None for the newest.
    """

    @lru_cache(maxsize=_KEPT)
    def kept(location: str, version: int, commit: _Stat) -> _T:
        del commit
        return compute(location, version)

    @wraps(compute)
    def found(location: str, version: int | None = None) -> _T:
        place = plain_location(location)
        number = newest_version(place) if version is None else version
        commit = None if number is None else _stat(place, number)
        if number is None or commit is None:
            return compute(location, version)
        return kept(location, number, commit)

    return found


def table_version(location: str) -> TableVersion | None:
    """The table's id and newest version; None if there is no table."""
    table = open_table(location)
    return None if table is None else TableVersion(str(table.metadata().id), table.version())


def commits(location: str, *, limit: int | None = None) -> list[Commit]:
    """The newest commits, newest first; ``limit=None``: all that the log still has.

    Without a table there are none.
    """
    table = open_table(location)
    if table is None:
        return []
    stat = _stat(plain_location(location), table.version())
    if limit is None or stat is None:
        # A whole log may be long and is seldom read, so it is not cached.
        return list(history(location, table, limit))
    return list(_kept_history(location, table.version(), stat, limit))


def committed_at(location: str, version: int) -> datetime | None:
    """When a version was committed; None if its commit is no longer readable."""
    found = commit(location, version)
    return None if found is None else found.timestamp


def transaction_version(location: str, app_id: str) -> int | None:
    """The last transaction version of an app id, or None."""
    table = open_table(location)
    return None if table is None else table.transaction_version(app_id)


@once_a_version
def schema(location: str, version: int | None = None) -> tuple[TableColumn, ...]:
    """The columns at a version, by default the newest.

    Raises:
        TableMissingError: the table does not exist.
    """
    table = existing_table(location, version=version)
    return columns_of(json.loads(table.schema().to_json()))


def columns_of(schema: Mapping[str, Any]) -> tuple[TableColumn, ...]:
    """The columns of a schema in Delta's JSON form."""
    return tuple(
        TableColumn(
            field["name"],
            _spark_type(field["type"]),
            field["nullable"],
            field.get("metadata", {}).get("comment"),
        )
        for field in schema["fields"]
    )


def shape(location: str, version: int) -> object:
    """A comparable value of the columns at a version: names, types, physical names, partitions.

    Delta's change feed reads all removed files with the newest partition columns: values that a
    file has within it are NULL then.

    Raises:
        TableMissingError: the table does not exist.
    """
    table = existing_table(location, version=version)
    partitions = tuple(table.metadata().partition_columns)
    return _shape(json.loads(table.schema().to_json())), partitions


def has_change_feed(location: str, version: int) -> bool:
    """Whether the change feed was enabled at a version.

    Raises:
        LogUnreadableError: the version is no longer readable.
    """
    table = open_table(location, version=version)
    return table is not None and feeds_changes(table.metadata().configuration)


def feeds_changes(properties: Mapping[str, str | None] | None) -> bool:
    """Whether these table properties enable the change feed.

    >>> feeds_changes({"delta.enableChangeDataFeed": "true"})
    True
    """
    return (properties or {}).get(_FEED) == "true"


@once_a_version
def size(location: str, version: int | None = None) -> TableSize:
    """Rows, bytes and files of a version, from the log alone.

    Raises:
        TableMissingError: the table does not exist.
    """
    table = existing_table(location, version=version)
    actions = files(table)
    sizes = actions.column("size_bytes")
    counts = actions.column("num_records") if "num_records" in actions.column_names else None
    counted = counts is not None and counts.null_count == 0
    return TableSize(
        rows=int(pc.sum(counts).as_py() or 0) if counted else None,
        bytes=int(pc.sum(sizes).as_py() or 0),
        files=actions.num_rows,
    )


def highest(location: str, column: str) -> str | None:
    """An upper bound of a text column, from the log's statistics; long texts are truncated.

    Returns:
        None if a file with rows has no statistics of the column.

    Raises:
        TableMissingError: the table does not exist.
    """
    actions = files(existing_table(location))
    name = f"max.{column}"
    if name not in actions.column_names or actions.column(name).null_count:
        return None
    found: str | None = pc.max(actions.column(name)).as_py()
    return found


def rows_by_partition(location: str, column: str) -> dict[str, int]:
    """Row counts by partition value, of a table with one partition column, from the log alone.

    Raises:
        TableMissingError: the table does not exist.
    """
    table = existing_table(location)
    actions = files(table)
    found: dict[str, int] = {}
    if actions.num_rows:
        values = actions.column(f"partition.{column}").to_pylist()
        for value, rows in zip(values, actions.column("num_records").to_pylist(), strict=True):
            found[str(value)] = found.get(str(value), 0) + int(rows)
    return found


def files(table: DeltaTable) -> pa.Table:
    """The files of a version: ``path``, ``size_bytes``, ``num_records`` and other facts of the log.

    Columns are flat, for instance ``partition.NAME``, ``min.NAME`` and ``max.NAME``. Paths are
    escaped, as in the log.
    """
    return pa.table(table.get_add_actions(flatten=True))


def paths(table: DeltaTable) -> list[str]:
    """The paths of a version's files, not escaped."""
    return [unquote(str(one)) for one in files(table).column("path").to_pylist()]


def open_table(location: str, *, version: int | None = None) -> DeltaTable | None:
    """A table at a version or the newest, for reading only; None if it does not exist.

    Raises:
        LogUnreadableError: the version is no longer readable.
    """
    return _if_there(location, lambda: _opened(location, version))


def open_to_write(location: str) -> DeltaTable | None:
    """A table at its newest version, not from the cache: a write changes the object's version.

    Raises:
        LogUnreadableError: the log cannot be read.
    """
    return _if_there(location, lambda: DeltaTable(plain_location(location)))


def existing_table(location: str, *, version: int | None = None) -> DeltaTable:
    """A table at a version, or the newest.

    Raises:
        TableMissingError: the table does not exist.
        LogUnreadableError: the version is no longer readable.
    """
    table = open_table(location, version=version)
    if table is None:
        raise TableMissingError(location)
    return table


def _if_there(location: str, opening: Callable[[], DeltaTable]) -> DeltaTable | None:
    try:
        return opening()
    except TableNotFoundError:
        return None
    except DeltaError as error:
        raise LogUnreadableError(location, str(error)) from error


@once_a_version
def _opened(location: str, version: int | None = None) -> DeltaTable:
    """A table, cached by version: a refresh opens the same one about ten times."""
    return DeltaTable(plain_location(location), version=version)


@lru_cache(maxsize=_KEPT)
def _kept_history(
    location: str, version: int, commit: _Stat, limit: int | None
) -> tuple[Commit, ...]:
    del commit
    return history(location, _opened(location, version), limit)


def _stat(place: str, version: int) -> _Stat | None:
    """What identifies a version's commit file; a recreated table has another file.

    None for object stores, for a commit that was cleaned up, and without a table.
    """
    try:
        stat = Path(place, "_delta_log", f"{version:020}.json").stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def _shape(kind: Any) -> object:
    if not isinstance(kind, Mapping):
        return kind
    if "fields" not in kind:
        return tuple(
            _shape(kind.get(part)) for part in ("type", "elementType", "keyType", "valueType")
        )
    return tuple(
        (
            field["name"],
            _shape(field["type"]),
            field.get("metadata", {}).get(_PHYSICAL_NAME, field["name"]),
        )
        for field in kind["fields"]
    )


def _spark_type(kind: str | Mapping[str, Any]) -> str:
    if isinstance(kind, str):
        return _SPARK_TYPES.get(kind, kind.replace(", ", ","))
    if kind["type"] == "array":
        return f"array<{_spark_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"map<{_spark_type(kind['keyType'])},{_spark_type(kind['valueType'])}>"
    inner = ",".join(f"{field['name']}:{_spark_type(field['type'])}" for field in kind["fields"])
    return f"struct<{inner}>"

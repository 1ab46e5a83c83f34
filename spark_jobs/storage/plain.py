"""Plain Delta tables, whose Parquet files are their rows, and which of them can be written as such.

They can be read and written without Delta's own reader and writer; all others are left to those.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from pyarrow.parquet import ParquetFile

from spark_jobs.storage import log, policy
from spark_jobs.storage.history import FeedFiles, feed_files
from spark_jobs.storage.lake import plain_location

# Features of the format that change nothing about how a file is read, or how rows are added.
_READ = frozenset({"timestampNtz"})
_WRITTEN = frozenset({"appendOnly", "invariants", "changeDataFeed", "timestampNtz"})
# Below the table, and without characters that some reader would have to escape.
_FILE = re.compile(r"(?!/)[\w.=/-]+")
# Spark takes the path of a file for a pattern.
_PATTERN = frozenset("{}[]*?\\")
_NO_FILE_ROWS = ("__COLLATIONS", "delta.columnMapping")


@dataclass(frozen=True)
class PlainTable:
    """A version of a table whose files are its rows.

    Attributes:
        identity: another one where the table was recreated.
        schema: as the log has it: Delta's form of JSON.
        files: paths below the location.
        written: whether rows can be added and files rewritten by these rules as well.
        bytes: of all files.
    """

    location: str
    identity: str
    version: int
    schema: Mapping[str, Any]
    files: tuple[str, ...]
    written: bool
    bytes: int


@log.once_a_version
def plain_table(location: str, version: int | None = None) -> PlainTable | None:
    """A version of a table, or the newest; None where there is none, or it is not plain."""
    table = log.open_table(location, version=version)
    if table is None or _PATTERN & set(plain_location(location)):
        return None
    if table.metadata().partition_columns or not files_are_rows(table):
        return None
    _, written = _features(table)
    actions = log.files(table)
    files = tuple(actions.column("path").to_pylist())
    size = int(pc.sum(actions.column("size_bytes")).as_py() or 0)
    if not plain_files(files) or not policy.SCANNED.fits(size=size):
        return None
    schema = json.loads(table.schema().to_json())
    place, identity = plain_location(location), str(table.metadata().id)
    return PlainTable(place, identity, table.version(), schema, files, written, size)


def plain_changes(location: str, *, after: int, upto: int) -> tuple[PlainTable, FeedFiles] | None:
    """The files of a plain table's change feed after one version, up to another.

    Returns:
        the table at the last version, and the files; None where they do not tell the changes.
    """
    table = plain_table(location, upto)
    files = None if table is None else feed_files(location, after=after, upto=upto)
    if table is None or files is None or not plain_files(files.all):
        return None
    return table, files


def files_are_rows(table: DeltaTable) -> bool:
    """Whether a Parquet file of the table holds its rows, under their names, and nothing else."""
    schema = table.schema().to_json()
    return not any(one in schema for one in _NO_FILE_ROWS) and _features(table)[0]


def open_for_adding(location: str) -> DeltaTable | None:
    """A table as it is now, of any size, if rows can be added to it by these rules."""
    table = log.open_to_write(location)
    addable = table is not None and files_are_rows(table) and _features(table)[1]
    return table if addable else None


def open_for_rewriting(location: str) -> DeltaTable | None:
    """A table as it is now, if it is small and its files can be rewritten without Spark."""
    table = plain_table(location)
    if table is None or not table.written or not policy.REWRITTEN.fits(size=table.bytes):
        return None
    return None if has_nanoseconds(table) else DeltaTable(table.location, version=table.version)


def has_nanoseconds(table: PlainTable) -> bool:
    """Whether a file may hold timestamps in Spark's old form, which delta-rs reads wrongly.

    It takes them for nanoseconds since 1970 in 64 bits, which end in 2262.
    """
    if '"timestamp"' not in json.dumps(table.schema):
        return False
    if not policy.FOOTERS.fits(files=len(table.files)):
        return True
    files = PyFileSystem(DeltaStorageHandler(table.location))
    for path in table.files:
        with files.open_input_file(path) as file:
            schema = ParquetFile(file).schema
            if any(schema.column(at).physical_type == "INT96" for at in range(len(schema))):
                return True
    return False


def _features(table: DeltaTable) -> tuple[bool, bool]:
    """Whether files can be read as they are, and whether rows can be written into the table."""
    protocol = table.protocol()
    readable = set(protocol.reader_features or ()) <= _READ and protocol.min_reader_version != 2
    writable = set(protocol.writer_features or ()) <= _WRITTEN
    # A version that lists no features has all that it allows, used or not.
    known = protocol.min_writer_version in {1, 2, 7} or (
        protocol.min_writer_version in {3, 4} and not _is_checked(table)
    )
    return readable, readable and writable and known


def _is_checked(table: DeltaTable) -> bool:
    """Whether the table uses what versions 3 and 4 allow and rows must be written for."""
    constraints = any(
        one.startswith("delta.constraints.") for one in table.metadata().configuration
    )
    return constraints or "delta.generationExpression" in table.schema().to_json()


def plain_files(paths: Iterable[str]) -> bool:
    """Whether files are few, and lie below their table under names that every reader takes."""
    found = tuple(paths)
    return policy.SCANNED.fits(files=len(found)) and all(_FILE.fullmatch(one) for one in found)

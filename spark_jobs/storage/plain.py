"""Plain Delta tables: their Parquet files contain exactly their rows.

Such tables can be read, and most of them written, without Delta's own reader and writer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from pyarrow.parquet import ParquetFile

from spark_jobs.storage import log, policy
from spark_jobs.storage.history import FeedFiles, feed_files
from spark_jobs.storage.key_ranges import files_in_reach
from spark_jobs.storage.lake import plain_location

# Table features that do not affect reading a file, or appending rows.
_READ = frozenset({"timestampNtz"})
_WRITTEN = frozenset({"appendOnly", "invariants", "changeDataFeed", "timestampNtz"})
# Relative paths without characters that a reader would have to escape.
_FILE = re.compile(r"(?!/)[\w.=/-]+")
# Spark treats a file path as a glob pattern.
_PATTERN = frozenset("{}[]*?\\")
# INT96 timestamps would otherwise become nanoseconds, which overflow in 2262.
INT96_AS_MICROSECONDS = pads.ParquetReadOptions(coerce_int96_timestamp_unit="us")
_UNWRITTEN_PARTS = ("decimal", "binary")
_NO_FILE_ROWS = ("__COLLATIONS", "delta.columnMapping")


@dataclass(frozen=True)
class PlainTable:
    """A version of a plain table.

    Attributes:
        identity: the table id; it changes if the table is recreated.
        schema: in Delta's JSON form.
        files: paths relative to the location: all, or those that are read.
        written: whether rows can be appended and files rewritten by this module's rules too.
        bytes: total size of these files.
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
    """A version of a table, by default the newest.

    Returns:
        None if the table does not exist, is not plain, or is too large to be read file by file.
    """
    table = log.open_table(location, version=version)
    return None if table is None else _with_files(location, table, log.files(table))


def plain_part(location: str, version: int, files: pa.Table) -> PlainTable | None:
    """Some files of a version as a table of their own; None where ``plain_table`` has none.

    Args:
        location: of the table.
        version: of the table.
        files: rows of ``log.files``.
    """
    return _with_files(location, log.existing_table(location, version=version), files)


def plain_changes(location: str, *, after: int, upto: int) -> tuple[PlainTable, FeedFiles] | None:
    """The change feed files of a plain table of any size in (after, upto].

    Returns:
        the table at the last version, without its files, and the files of the feed; None if files
        do not give the changes, or are too large to be read one by one.
    """
    table = log.open_table(location, version=upto)
    plain = None if table is None else _with_files(location, table, None)
    files = None if plain is None else feed_files(location, after=after, upto=upto)
    if plain is None or files is None or not plain_files(files.all, size=files.bytes):
        return None
    return plain, files


def _with_files(location: str, table: DeltaTable, files: pa.Table | None) -> PlainTable | None:
    if _PATTERN & set(plain_location(location)):
        return None
    if table.metadata().partition_columns or not files_are_rows(table):
        return None
    paths = () if files is None else tuple(files.column("path").to_pylist())
    size = 0 if files is None else int(pc.sum(files.column("size_bytes")).as_py() or 0)
    if not plain_files(paths, size=size):
        return None
    return PlainTable(
        location=plain_location(location),
        identity=str(table.metadata().id),
        version=table.version(),
        schema=json.loads(table.schema().to_json()),
        files=paths,
        written=_features(table)[1],
        bytes=size,
    )


def files_are_rows(table: DeltaTable) -> bool:
    """Whether the Parquet files contain the rows, under their column names, and nothing else."""
    schema = table.schema().to_json()
    return not any(one in schema for one in _NO_FILE_ROWS) and _features(table)[0]


def open_for_adding(location: str) -> DeltaTable | None:
    """The table at its newest version if delta-rs can append rows to it, at any size; else None."""
    table = log.open_to_write(location)
    addable = table is not None and files_are_rows(table) and _written(table)
    return table if addable else None


def open_for_rewriting(
    location: str, keys: Callable[[], pa.Table | None] = lambda: None
) -> DeltaTable | None:
    """The table at its newest version if delta-rs can rewrite its files, and they are small.

    Args:
        location: of the table.
        keys: returns the keys of the rows to rewrite, a column for each key column; only files that
            may contain one are counted. None: all files are.

    Returns:
        otherwise None.
    """
    table = log.open_table(location)
    plain = None if table is None else _with_files(location, table, None)
    # The keys may cost a query, so they come last.
    if table is None or plain is None or not plain.written:
        return None
    asked, files = keys(), log.files(table)
    in_reach = files if asked is None else files_in_reach(files, asked)
    part = _with_files(location, table, in_reach)
    if part is None or not policy.REWRITTEN.fits(size=part.bytes) or has_nanoseconds(part):
        return None
    return DeltaTable(part.location, version=part.version)


def writable(location: str) -> bool:
    """Whether delta-rs can write to the location: there is no table, or one it supports."""
    table = log.open_to_write(location)
    return table is None or _written(table)


def has_nanoseconds(table: PlainTable) -> bool:
    """Whether a file may contain INT96 timestamps, which delta-rs misreads.

    It reads them as 64-bit nanoseconds since 1970, which overflow in 2262.
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


def _written(table: DeltaTable) -> bool:
    """Whether delta-rs can write rows to the table, in the form that readers expect.

    It writes the decimal -1.5 of a partition as -1.-5, after which nobody can open the table, and
    bytes with escapes that no reader decodes.
    """
    parted = set(table.metadata().partition_columns)
    fields = json.loads(table.schema().to_json())["fields"] if parted else []
    apart = any(
        one["name"] in parted and str(one["type"]).startswith(_UNWRITTEN_PARTS) for one in fields
    )
    return _features(table)[1] and not apart


def _features(table: DeltaTable) -> tuple[bool, bool]:
    """Whether files can be read directly, and whether rows can be written to the table."""
    protocol = table.protocol()
    readable = set(protocol.reader_features or ()) <= _READ and protocol.min_reader_version != 2
    writable = set(protocol.writer_features or ()) <= _WRITTEN
    # An older protocol version lists no features; it implies all that it allows.
    known = protocol.min_writer_version in {1, 2, 7} or (
        protocol.min_writer_version in {3, 4} and not _is_checked(table)
    )
    return readable, readable and writable and known


def _is_checked(table: DeltaTable) -> bool:
    """Whether the table uses constraints or generated columns, which versions 3 and 4 allow."""
    constraints = any(
        one.startswith("delta.constraints.") for one in table.metadata().configuration
    )
    return constraints or "delta.generationExpression" in table.schema().to_json()


def plain_files(paths: Sequence[str], *, size: int | None) -> bool:
    """Whether there are few small files, with relative paths that every reader accepts.

    Args:
        paths: as the log has them.
        size: of all files in bytes; None if the log does not have it.
    """
    few = policy.SCANNED.fits(files=len(paths), size=size)
    return few and all(_FILE.fullmatch(one) for one in paths)

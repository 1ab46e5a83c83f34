"""Reading plain Delta tables by their files: Spark then runs no query over the log.

For every version of a table, Spark's own Delta reader runs several jobs over the log, whatever the
table's size. delta-rs reads the log in milliseconds; where a table is plain, meaning that its
Parquet files are its rows, Spark is given the files. Any other table is left to Delta's reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.storage import log, policy, tables
from spark_jobs.storage.history import feed_files
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.tables import comment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def files_are_rows(table: DeltaTable) -> bool:
    """Whether a Parquet file of the table holds its rows, under their names, and nothing else."""
    schema = table.schema().to_json()
    return not any(one in schema for one in _NO_FILE_ROWS) and _features(table)[0]


def open_for_adding(location: str) -> DeltaTable | None:
    """A table as it is now, of any size, if rows can be added to it by these rules."""
    table = log.open_to_write(location)
    addable = table is not None and files_are_rows(table) and _features(table)[1]
    return table if addable else None


def read(spark: SparkSession, location: str, version: int | None = None) -> DataFrame:
    """A table at a version, or as it is now; of what columns carry, only their descriptions."""
    table = plain_table(location, version)
    if table is None:
        return tables.read(spark, location, version)
    return _of_files(spark, table, table.files)


def changes(spark: SparkSession, location: str, *, after: int, upto: int) -> DataFrame:
    """The rows that came and went after one version, up to another.

    Returns:
        the table's columns and ``_change_type`` (``insert``, ``delete``, ``update_preimage``,
        ``update_postimage``).
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    table = plain_table(location, upto)
    files = None if table is None else feed_files(location, after=after, upto=upto)
    if table is None or files is None or not plain_files(files.all):
        return tables.changes(spark, location, after=after, upto=upto)
    found = _of_files(spark, table, files.changes, changes=True)
    for paths, word in ((files.came, "insert"), (files.went, "delete")):
        if paths:
            rows = _of_files(spark, table, paths)
            found = found.unionAll(rows.withColumn(tables.CHANGE_TYPE, F.lit(word)))
    return found


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


def _of_files(
    spark: SparkSession, table: PlainTable, files: Iterable[str], *, changes: bool = False
) -> DataFrame:
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415

    fields = [
        StructField(one.name, one.dataType, metadata=comment(one.metadata.get("comment")))
        for one in StructType.fromJson(dict(table.schema))
    ]
    if changes:
        fields.append(StructField(tables.CHANGE_TYPE, StringType()))
    schema = StructType(fields)
    paths = [f"{table.location}/{one}" for one in files]
    if not paths:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*paths)

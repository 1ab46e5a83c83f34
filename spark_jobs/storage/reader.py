"""The only reader of tables: a version, or the changes between two versions.

Delta's reader in Spark runs several jobs over the log for each table version, however small the
table is; delta-rs reads the log in milliseconds. So the files of a plain table (see ``plain``) are
read by Spark or Arrow directly, and all other tables by Delta's reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, DeltaProtocolError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from pyarrow.parquet import ParquetFile

from spark_jobs.storage import log, policy, tables
from spark_jobs.storage.columns import comment, quoted
from spark_jobs.storage.delta import CAME, CHANGE_TYPE
from spark_jobs.storage.errors import LogUnreadableError, TableMissingError
from spark_jobs.storage.history import feed_files
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.plain import (
    INT96_AS_MICROSECONDS,
    PlainTable,
    files_are_rows,
    has_nanoseconds,
    plain_changes,
    plain_part,
    plain_table,
)
from spark_jobs.storage.rows import no_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Session = Callable[[], "SparkSession"]


def read(spark: SparkSession, location: str, version: int | None = None) -> DataFrame:
    """A table at a version, by default the newest; of column metadata only comments are kept."""
    table = plain_table(location, version)
    if table is None:
        return tables.read(spark, location, version)
    return _frame_of(spark, table, table.files)


def read_files(
    spark: SparkSession, location: str, version: int, files: pa.Table
) -> DataFrame | None:
    """The rows of some files of a version; None if they have to be read by Delta's reader.

    Args:
        spark: session to use.
        location: of the table.
        version: of the table.
        files: rows of ``log.files``.
    """
    table = plain_part(location, version, files)
    return None if table is None else _frame_of(spark, table, table.files)


def read_by_delta(spark: SparkSession, location: str, version: int | None = None) -> DataFrame:
    """The same rows by Delta's own reader, with all column metadata.

    For checks that must not depend on this module, and to rewrite a table with its metadata. Unless
    a version is given, each job reads the one that is newest when it starts.
    """
    return tables.read(spark, location, version)


def changes(spark: SparkSession, location: str, *, after: int, upto: int) -> DataFrame:
    """The inserted and deleted rows of the versions in (after, upto].

    Returns:
        the table's columns and ``_change_type``: ``insert``, ``delete``, ``update_preimage`` or
            ``update_postimage``. Delta's reader adds two columns, ``_commit_version`` and
            ``_commit_timestamp``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    plain = plain_changes(location, after=after, upto=upto)
    if plain is None:
        return tables.changes(spark, location, after=after, upto=upto)
    table, files = plain
    found = _frame_of(spark, table, files.changes, changes=True)
    for paths, word in ((files.added, "insert"), (files.removed, "delete")):
        if paths:
            rows = _frame_of(spark, table, paths)
            found = found.unionAll(rows.withColumn(CHANGE_TYPE, F.lit(word)))
    return found


def few_rows(location: str) -> pa.Table | None:
    """All rows of a small table; None if it is large or Arrow cannot read its files."""
    table = plain_table(location)
    if table is None or not policy.REWRITTEN.fits(size=table.bytes) or has_nanoseconds(table):
        return None
    files = PyFileSystem(DeltaStorageHandler(table.location))
    schema = pa.schema(DeltaTable(table.location, version=table.version).schema().to_arrow())
    parts = [
        _in_schema(ParquetFile(files.open_input_file(path)).read(), schema) for path in table.files
    ]
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """A file's rows with the table's columns; one that was added later is NULL."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def read_columns(
    location: str,
    columns: Sequence[str],
    version: int | None = None,
    *,
    where: pc.Expression | None = None,
) -> pa.Table:
    """Some columns of a version, by default the newest, in memory.

    Args:
        location: of the table.
        columns: names of the columns.
        version: of the table; None: the newest.
        where: only rows that satisfy this; None: all.

    Raises:
        TableMissingError: the table does not exist.
        LogUnreadableError: the log cannot be read.
    """
    try:
        table = DeltaTable(plain_location(location), version=version)
        return table.to_pyarrow_dataset().to_table(columns=list(columns), filter=where)
    except TableNotFoundError as error:
        raise TableMissingError(location) from error
    except DeltaError as error:
        raise LogUnreadableError(location, str(error)) from error


def arrow_schema(location: str, version: int, columns: Sequence[str]) -> pa.Schema:
    """The Arrow types of some columns at a version.

    Raises:
        TableMissingError: the table does not exist.
        LogUnreadableError: the version is no longer readable.
    """
    table = log.existing_table(location, version=version)
    found = pa.schema(table.schema().to_arrow())
    return pa.schema([found.field(name).remove_metadata() for name in columns])


def table_rows(
    location: str, version: int, columns: Sequence[str], *, spark: Session
) -> Iterator[pa.RecordBatch]:
    """Some columns of all rows at a version.

    Raises:
        TableMissingError: the table does not exist.
        LogUnreadableError: the version is no longer readable.
    """
    table = log.existing_table(location, version=version)
    try:
        rows = table.to_pyarrow_dataset(parquet_read_options=INT96_AS_MICROSECONDS)
    except (DeltaProtocolError, ValueError):
        # Not its kind of table, or statistics with a date that Python does not have.
        frame = tables.read(spark(), location, version).select(*map(quoted, columns))
        yield from frame.toArrow().to_batches()
        return
    yield from rows.to_batches(columns=list(columns))


def changed_rows(
    location: str, columns: Sequence[str], *, after: int, upto: int, spark: Session
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """The inserted and deleted rows of the versions in (after, upto], in no order.

    Yields:
        the given columns of the rows, and for each row TRUE (inserted) or FALSE (deleted).

    Raises:
        TableMissingError: the table does not exist.
        LogUnreadableError: the version ``upto`` is no longer readable.
    """
    table = log.open_table(location, version=upto)
    files = feed_files(location, after=after, upto=upto)
    if table is None or files is None or not files_are_rows(table):
        found = tables.changes(spark(), location, after=after, upto=upto)
        named = [*map(quoted, columns), CHANGE_TYPE]
        yield from map(_with_flag, found.select(*named).toArrow().to_batches())
        return
    schema = arrow_schema(location, upto, columns)
    with_type = schema.append(pa.field(CHANGE_TYPE, pa.string()))
    yield from map(_with_flag, _of_files(location, files.changes, with_type))
    for paths, came in ((files.added, True), (files.removed, False)):
        for batch in _of_files(location, paths, schema):
            yield batch, pa.array([came] * batch.num_rows, pa.bool_())


def _with_flag(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    kinds = batch.column(CHANGE_TYPE).to_pylist()
    came = pa.array([one in CAME for one in kinds], pa.bool_())
    return batch.drop_columns([CHANGE_TYPE]), came


def _of_files(location: str, paths: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if not paths:
        return
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    found = ds.dataset(
        [unquote(one) for one in paths],
        schema=schema,
        format=ds.ParquetFileFormat(read_options=INT96_AS_MICROSECONDS),
        filesystem=files,
    )
    yield from found.to_batches()


def _frame_of(
    spark: SparkSession, table: PlainTable, files: Iterable[str], *, changes: bool = False
) -> DataFrame:
    from pyspark.sql.types import StringType, StructField, StructType  # noqa: PLC0415

    fields = [
        StructField(one.name, one.dataType, metadata=comment(one.metadata.get("comment")))
        for one in StructType.fromJson(dict(table.schema))
    ]
    if changes:
        fields.append(StructField(CHANGE_TYPE, StringType()))
    schema = StructType(fields)
    paths = [f"{table.location}/{one}" for one in files]
    if not paths:
        return no_rows(spark, schema)
    return spark.read.schema(schema).parquet(*paths)

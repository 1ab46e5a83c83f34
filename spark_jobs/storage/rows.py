"""Rows and changed rows of a table in this process, a batch at a time: Arrow, and no Spark.

Where a table's files are not its rows (deletion vectors, renamed columns), Spark is asked for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaProtocolError
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.storage import log, tables
from spark_jobs.storage.history import feed_files
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.plain import files_are_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Spark's old form of timestamps would otherwise become nanoseconds, which end in 2262.
_READ = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")
# Readable by name: what each row of the change feed means.
CHANGE_TYPE = tables.CHANGE_TYPE
Session = Callable[[], "SparkSession"]


def arrow_schema(location: str, version: int, columns: Sequence[str]) -> pa.Schema:
    """The types of some columns at a version.

    Raises:
        TableMissingError: there is no table.
        LogUnreadableError: the version is not readable any more.
    """
    table = log.existing_table(location, version=version)
    found = pa.schema(table.schema().to_arrow())
    return pa.schema([found.field(name).remove_metadata() for name in columns])


def table_rows(
    location: str, version: int, columns: Sequence[str], *, spark: Session
) -> Iterator[pa.RecordBatch]:
    """Some columns of every row at a version.

    Raises:
        TableMissingError: there is no table.
        LogUnreadableError: the version is not readable any more.
    """
    table = log.existing_table(location, version=version)
    try:
        rows = table.to_pyarrow_dataset(parquet_read_options=_READ)
    except DeltaProtocolError:
        frame = tables.read(spark(), location, version).select(*map(tables.quoted, columns))
        yield from frame.toArrow().to_batches()
        return
    yield from rows.to_batches(columns=list(columns))


def changed_rows(
    location: str, columns: Sequence[str], *, after: int, upto: int, spark: Session
) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """The rows that came and went after one version, up to another, in no order.

    Yields:
        some columns of the rows, and whether each came (TRUE) or went (FALSE).
    """
    table = log.open_table(location, version=upto)
    files = feed_files(location, after=after, upto=upto)
    if table is None or files is None or not files_are_rows(table):
        found = tables.changes(spark(), location, after=after, upto=upto)
        named = [*map(tables.quoted, columns), CHANGE_TYPE]
        yield from map(_told, found.select(*named).toArrow().to_batches())
        return
    schema = arrow_schema(location, upto, columns)
    with_type = schema.append(pa.field(CHANGE_TYPE, pa.string()))
    yield from map(_told, _of_files(location, files.changes, with_type))
    for paths, came in ((files.came, True), (files.went, False)):
        for batch in _of_files(location, paths, schema):
            yield batch, pa.array([came] * batch.num_rows, pa.bool_())


def _told(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    kinds = batch.column(CHANGE_TYPE).to_pylist()
    came = pa.array([one in tables.CAME for one in kinds], pa.bool_())
    return batch.drop_columns([CHANGE_TYPE]), came


def _of_files(location: str, paths: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if not paths:
        return
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    found = ds.dataset(
        [unquote(one) for one in paths],
        schema=schema,
        format=ds.ParquetFileFormat(read_options=_READ),
        filesystem=files,
    )
    yield from found.to_batches()

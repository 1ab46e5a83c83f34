"""Finds tables with files whose bounds of floating-point numbers lack NaN.

In the statistics of delta-rs NaN is no value, for Spark it is the largest: a filter skips rows.
delta-rs writes no such statistics any more (``arrow_tables.files_of``), but earlier releases let it
compact files with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from pyarrow.parquet import ParquetFile

from spark_jobs.storage import log
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.plain import files_are_rows

_WRITERS = ("delta-rs", "parquet-rs")


def lack_nan(location: str) -> bool:
    """Whether delta-rs wrote a file of a table with bounds of a FLOAT or DOUBLE column.

    Only the footers of files with such bounds in the log are read.
    """
    table = log.open_table(location)
    if table is None or not files_are_rows(table):
        return False
    held = log.files(table)
    names = (f"max.{one}" for one in _floats(pa.schema(table.schema().to_arrow())))
    bounds = [held.column(one) for one in names if one in held.column_names]
    bounded = [held.column("path").filter(pc.is_valid(one)).to_pylist() for one in bounds]
    files = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    return any(_writer(files, unquote(path)).startswith(_WRITERS) for path in set().union(*bounded))


def _floats(fields: pa.Schema | pa.StructType, above: str = "") -> Iterator[str]:
    """The names of floating-point columns, with those within structs, as the log's bounds."""
    for field in fields:
        name = f"{above}{field.name}"
        if pa.types.is_floating(field.type):
            yield name
        elif pa.types.is_struct(field.type):
            yield from _floats(field.type, f"{name}.")


def _writer(files: PyFileSystem, path: str) -> str:
    """Who wrote a file; empty if that is unknown, as the file is damaged or missing."""
    try:
        with files.open_input_file(path) as file:
            return ParquetFile(file).metadata.created_by or ""
    except (OSError, pa.ArrowException):
        return ""

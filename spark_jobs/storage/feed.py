"""Counts the net changes of a change feed in some columns, without Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem
from pyarrow.parquet import ParquetFile

from spark_jobs.graph.maintenance.reach import RowsMoved
from spark_jobs.storage import log, policy
from spark_jobs.storage.delta import CAME, CHANGE_TYPE
from spark_jobs.storage.history import feed_files
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.plain import files_are_rows

_WEIGHT = "__w"


@dataclass(frozen=True)
class ChangeFeed:
    """The changes of a version range, in memory.

    Attributes:
        rows: the table's columns, and the weight 1 for an inserted row, -1 for a deleted one.
    """

    rows: pa.Table

    def net(self, columns: Collection[str] | None) -> RowsMoved | None:
        """Count the deleted and inserted rows, restricted to some columns.

        A row that was deleted and inserted unchanged is not counted, nor is an update of other
        columns.

        Args:
            columns: lower-case names; None: all columns that were read.

        Returns:
            None if a column has values that Arrow cannot group: arrays, structs and maps.
        """
        names = [
            one
            for one in self.rows.column_names
            if one != _WEIGHT and (columns is None or one.lower() in columns)
        ]
        kept = self.rows.select([*names, _WEIGHT])
        if any(pa.types.is_nested(kept.schema.field(name).type) for name in names):
            return None
        if not names:
            # Without columns only the number of rows can differ.
            difference = pc.sum(kept.column(_WEIGHT)).as_py() or 0
            return RowsMoved(max(-difference, 0), max(difference, 0))
        summed = kept.group_by(names).aggregate([(_WEIGHT, "sum")]).column(f"{_WEIGHT}_sum")
        left = pc.sum(pc.min_element_wise(summed, 0)).as_py() or 0
        entered = pc.sum(pc.max_element_wise(summed, 0)).as_py() or 0
        return RowsMoved(-left, entered)


def change_feed(
    location: str, *, after: int, upto: int, columns: Collection[str] | None
) -> ChangeFeed | None:
    """The changes of the versions in (after, upto], in some columns.

    Args:
        location: of the table.
        after: the version before the first change.
        upto: the version of the last change.
        columns: lower-case names; None: all.

    Returns:
        None if files do not give the changes, a file is missing, or there are too many rows.
    """
    files = feed_files(location, after=after, upto=upto)
    table = log.open_table(location, version=upto)
    if table is None or files is None or not files_are_rows(table):
        return None
    if not policy.COUNTED.fits(files=len(files.all)):
        return None
    wanted = [
        one
        for one in pa.schema(table.schema().to_arrow())
        if columns is None or one.name.lower() in columns
    ]
    weighted = pa.schema([*wanted, pa.field(_WEIGHT, pa.int64())])
    store = PyFileSystem(DeltaStorageHandler(plain_location(location)))
    parts, rows = [], 0
    for paths, weight in ((files.changes, None), (files.added, 1), (files.removed, -1)):
        for path in paths:
            try:
                with store.open_input_file(unquote(path)) as file:
                    read = ParquetFile(file, coerce_int96_timestamp_unit="us")
                    rows += read.metadata.num_rows
                    if not policy.COUNTED.fits(rows=rows):
                        return None
                    # Writers store the same type differently, strings for instance.
                    parts.append(_in_schema(_weighted(read, weighted.names, weight), weighted))
            except FileNotFoundError:
                return None
    return ChangeFeed(pa.concat_tables([weighted.empty_table(), *parts]))


def _weighted(file: ParquetFile, names: Sequence[str], weight: int | None) -> pa.Table:
    """A file's rows with their weight; None: ``_change_type`` of each row gives it."""
    held = file.schema_arrow.names
    own = [one for one in names if one != _WEIGHT and one in held]
    if weight is None:
        rows = file.read(columns=[*own, CHANGE_TYPE])
        came = pc.is_in(rows.column(CHANGE_TYPE).cast(pa.string()), pa.array(CAME))
        weights = pc.if_else(came, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64()))
        return rows.drop_columns([CHANGE_TYPE]).append_column(_WEIGHT, weights)
    weights = pa.array([weight] * file.metadata.num_rows, pa.int64())
    if not own:
        return pa.table({_WEIGHT: weights})
    return file.read(columns=own).append_column(_WEIGHT, weights)


def _in_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same columns as all files have; one that was added to the table later is NULL."""
    for field in schema:
        if field.name not in rows.column_names:
            rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema, safe=False)

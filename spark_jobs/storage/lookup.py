"""Looks up rows of a table by key, without Spark.

For a small batch most of Spark's time is spent on reading logs, shuffling unchanged rows and
reading the new version back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.storage import log, policy
from spark_jobs.storage.key_ranges import as_numbers, may_have, ranges_of
from spark_jobs.storage.plain import plain_table


def rows_with_keys(location: str, keys: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """The rows at the newest version that have one of the keys, and possibly more rows.

    Args:
        location: of the table.
        keys: one column per key column, of types that support lookups.
        columns: columns to read.

    Returns:
        these columns; None if the table is not plain, or too many rows have the keys.
    """
    plain = plain_table(location)
    if plain is None:
        return None
    table = DeltaTable(plain.location, version=plain.version)
    held = pa.schema(table.schema().to_arrow())
    values = {
        name: pc.unique(keys.column(name).cast(held.field(name).type)) for name in keys.column_names
    }
    schema = pa.schema([held.field(name) for name in dict.fromkeys([*columns, *values])])
    paths = _files_in_reach(table, values)
    if not paths or not keys.num_rows:
        return schema.empty_table().select(columns)
    files = PyFileSystem(DeltaStorageHandler(plain.location))
    dataset = pads.dataset(paths, schema=schema, format="parquet", filesystem=files)
    found, count = [], 0
    # Not as a scan filter: that compares file statistics, whose types depend on the writer.
    for batch in dataset.to_batches():
        asked_for = [pc.is_in(batch.column(name), one) for name, one in values.items()]
        found.append(batch.filter(reduce(pc.and_, asked_for)).select(columns))
        count += found[-1].num_rows
        if not policy.RESULT.fits(rows=count):
            return None
    return pa.Table.from_batches(found, schema.empty_table().select(columns).schema)


def _files_in_reach(table: DeltaTable, values: dict[str, pa.Array]) -> list[str]:
    """The files that may contain these values, by the statistics in the log."""
    actions = log.files(table)
    reach = pa.chunked_array([[True] * actions.num_rows], pa.bool_())
    for name, found in values.items():
        low, high = f"min.{name}", f"max.{name}"
        ranges = ranges_of(found)
        if ranges is None or not {low, high} <= set(actions.column_names):
            continue
        # If no file has statistics, the column has no type.
        first, last = (as_numbers(actions.column(one).cast(found.type)) for one in (low, high))
        reach = pc.and_(reach, may_have(first, last, ranges))
    return list(actions.column("path").filter(reach).to_pylist())

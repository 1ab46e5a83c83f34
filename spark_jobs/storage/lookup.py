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
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import PyFileSystem

from spark_jobs.storage import log, policy
from spark_jobs.storage.key_ranges import files_in_reach
from spark_jobs.storage.plain import INT96_AS_MICROSECONDS, plain_part


def rows_with_keys(location: str, keys: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """The rows at the newest version that have one of the keys, and possibly more rows.

    Args:
        location: of the table.
        keys: one column per key column, of types that support lookups.
        columns: columns to read.

    Returns:
        these columns; None if the table is not plain, if the files that may have the keys are
            large, or if too many rows have them.
    """
    table = log.open_table(location)
    if table is None:
        return None
    held = pa.schema(table.schema().to_arrow())
    values = {
        name: pc.unique(keys.column(name).cast(held.field(name).type)) for name in keys.column_names
    }
    schema = pa.schema([held.field(name) for name in dict.fromkeys([*columns, *values])])
    # One column may have fewer values than another.
    wanted = keys.cast(pa.schema([held.field(name) for name in keys.column_names]))
    plain = plain_part(location, table.version(), files_in_reach(log.files(table), wanted))
    if plain is None:
        return None
    if not plain.files or not keys.num_rows:
        return schema.empty_table().select(columns)
    files = PyFileSystem(DeltaStorageHandler(plain.location))
    kind = pads.ParquetFileFormat(read_options=INT96_AS_MICROSECONDS)
    dataset = pads.dataset(list(plain.files), schema=schema, format=kind, filesystem=files)
    found, count = [], 0
    # Not as a scan filter: that compares file statistics, whose types depend on the writer.
    for batch in dataset.to_batches():
        asked_for = [pc.is_in(batch.column(name), one) for name, one in values.items()]
        found.append(batch.filter(reduce(pc.and_, asked_for)).select(columns))
        count += found[-1].num_rows
        if not policy.RESULT.fits(rows=count):
            return None
    return pa.Table.from_batches(found, schema.empty_table().select(columns).schema)

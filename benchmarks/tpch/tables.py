"""The eight tables of TPC-H as Delta tables with the change feed on, written by delta-rs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

# Each table and its key columns.
KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
FILE_BYTES = 64 * 1024 * 1024
_PROPERTIES = {"delta.enableChangeDataFeed": "true"}


def generate(lake: Path, *, scale: float) -> None:
    """Write the tables at a scale factor below a folder; 1 is about a gigabyte of text.

    Raises:
        FileNotFoundError: the generator is not installed in this environment.
    """
    generator = Path(sys.executable).with_name("tpchgen-cli")
    with tempfile.TemporaryDirectory(prefix="tpch") as scratch:
        subprocess.run(
            [generator, "parquet", "-s", str(scale), "-o", scratch, "--quiet"],
            check=True,
        )
        for name in KEYS:
            write_deltalake(
                lake / name,
                _reader(Path(scratch, f"{name}.parquet")),
                configuration=_PROPERTIES,
                target_file_size=FILE_BYTES,
            )


def table(lake: Path, name: str, version: int | None = None) -> DeltaTable:
    """A table at a version, or the newest one."""
    return DeltaTable(lake / name, version=version)


def versions(lake: Path) -> dict[str, int]:
    """The newest version of every table."""
    return {name: table(lake, name).version() for name in KEYS}


def _reader(file: Path) -> pa.RecordBatchReader:
    """The generator's rows, with types that every Delta reader supports."""
    source = pq.ParquetFile(file)
    schema = pa.schema([(one.name, _type(one.type)) for one in source.schema_arrow])
    batches = (batch.cast(schema) for batch in source.iter_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) else kind

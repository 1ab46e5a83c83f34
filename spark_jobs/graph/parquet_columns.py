"""The columns of a Parquet file, and the declared types that their values can have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pyarrow.parquet import ParquetFile

# Of the values of all columns, unpacked.
MOST_BYTES: Final = 64 * 2**20
# Spark's names of Arrow's types.
_WHOLE: Final = {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint"}
_NAMES: Final = {**_WHOLE, "bool": "boolean", "date32[day]": "date", "large_string": "string"}
# Spark writes TIMESTAMP in this type, which has no place for a time zone.
_SPARK_TIMESTAMP: Final = "INT96"


def open_parquet(content: bytes) -> ParquetFile:
    """A Parquet file whose values fit into memory.

    Raises:
        ValueError: it is not Parquet, or too large when unpacked.
    """
    try:
        file = ParquetFile(
            pa.BufferReader(content),
            # Nanoseconds would end in the year 2262.
            coerce_int96_timestamp_unit="us",
            page_checksum_verification=True,
        )
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error).splitlines()[0]) from error
    metadata = file.metadata
    groups = [metadata.row_group(one) for one in range(metadata.num_row_groups)]
    # A CSV file has at least one byte for each value; repeated values take none here.
    values = metadata.num_rows * metadata.num_columns
    if max(values, sum(one.total_byte_size for one in groups)) > MOST_BYTES:
        raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB when it is unpacked")
    return file


def parquet_columns(content: bytes) -> list[tuple[str, pa.DataType]]:
    """The columns of a file, each as name and type; a timestamp of Spark has the zone UTC.

    Raises:
        ValueError: it is not Parquet, or too large when unpacked.
    """
    return file_columns(open_parquet(content))


def file_columns(file: ParquetFile) -> list[tuple[str, pa.DataType]]:
    """The columns of an open file; see ``parquet_columns``."""
    leaves = [file.schema.column(at) for at in range(len(file.schema))]
    spark = {one.path for one in leaves if one.physical_type == _SPARK_TIMESTAMP}
    return [
        (one.name, pa.timestamp("us", "UTC") if one.name in spark else plain(one.type))
        for one in file.schema_arrow
    ]


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column, which may be encoded with a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def unfit_types(found: Mapping[str, pa.DataType], columns: Mapping[str, str]) -> dict[str, str]:
    """The columns whose values cannot be of the declared type, each with the file's type.

    Args:
        found: types in the file, by column.
        columns: declared Spark SQL types, by column.

    >>> unfit_types({"k": pa.int64(), "rate": pa.float64()}, {"k": "int", "rate": "decimal(6,4)"})
    {'rate': 'DOUBLE'}
    """
    return {
        name: _told(kind)
        for name, kind in found.items()
        if name in columns and not _fits(kind, columns[name])
    }


def _fits(found: pa.DataType, declared: str) -> bool:
    """Whether a value that is in range becomes the declared type without loss."""
    types = pa.types
    whole = types.is_integer(found)
    floating = types.is_floating(found)
    text = types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)
    time = types.is_timestamp(found)
    fits = {
        "boolean": types.is_boolean(found),
        # The nearest double of 0.19 is another number.
        "decimal": types.is_decimal(found) or whole,
        "double": floating or (whole and found.bit_width <= 32),
        "string": text,
        "date": types.is_date(found),
        "timestamp": time and found.tz is not None,
        "timestamp_ntz": time and found.tz is None,
        **dict.fromkeys(_WHOLE.values(), whole),
    }
    # Other declared types are refused elsewhere.
    return types.is_null(found) or bool(fits.get(declared.partition("(")[0], True))


def _told(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _NAMES.get(str(kind), str(kind)).upper()

"""The rows of a Parquet file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from spark_jobs.bronze.seed_rows import Field, SeedLine
from spark_jobs.bronze.seed_values import reader
from spark_jobs.graph.errors import SeedUnreadableError
from spark_jobs.graph.parquet_columns import file_columns, open_parquet, plain

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - of both kinds of timestamp
_FIRST_DAY = date(1970, 1, 1).toordinal()
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_ROWS_AT_ONCE = 10_000


def parquet_fields(content: bytes, kinds: Mapping[str, str]) -> dict[str, Field]:
    """How each column's values are read from ``parquet_lines``, by name.

    Args:
        content: of a file whose columns were checked.
        kinds: declared Spark SQL types by column.
    """
    found = dict(file_columns(open_parquet(content)))
    return {name: _field(found[name], kind) for name, kind in kinds.items()}


def parquet_lines(path: str, content: bytes, fields: Mapping[str, Field]) -> Iterator[SeedLine]:
    """The rows of a file, one value per column of ``fields``; times are integers since 1970, texts
    are bytes.

    Args:
        path: name of the file in messages.
        content: of a file whose columns were checked.
        fields: from ``parquet_fields``.

    Raises:
        SeedUnreadableError: a page of the file is damaged.
    """
    number = 0
    try:
        for batch in open_parquet(content).iter_batches(_ROWS_AT_ONCE):
            names = batch.schema.names
            columns = [_raw(one).to_pylist() for one in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                row = dict(zip(names, values, strict=True))
                yield SeedLine(number, row, partial(_text, row, fields))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SeedUnreadableError(path, "Parquet", str(error).splitlines()[0]) from error


def _raw(column: pa.Array) -> pa.Array:
    """Values that Python can hold: it has neither texts of any bytes nor years above 9999."""
    kind = plain(column.type)
    if kind != column.type:
        column = column.dictionary_decode()
    if pa.types.is_timestamp(kind):
        return column.cast(pa.int64())
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_binary())
    return column


def _field(found: pa.DataType, kind: str) -> Field:
    if pa.types.is_timestamp(found):
        unit, zoned = _PER_SECOND[found.unit], bool(found.tz)
        wide = pa.timestamp(found.unit, "UTC" if zoned else None)
        return Field(
            lambda value: _time(value, unit, zoned=zoned),
            lambda value: str(pa.scalar(value, pa.int64()).cast(wide).cast(pa.string())),
        )
    if pa.types.is_date(found):
        return Field(_day, lambda value: str(pa.scalar(value, pa.date32()).cast(pa.string())))
    read = reader(kind)
    if pa.types.is_decimal(found):
        return Field(lambda value: read(format(value, "f")))
    if kind == "string":
        return Field(lambda value: read(value.decode("utf-8")))
    return Field(lambda value: read(str(value)))


def _time(value: int, per_second: int, *, zoned: bool) -> datetime:
    micros, rest = divmod(value * 1_000_000, per_second)
    if rest:
        raise ValueError("it has more than 6 digits of a second")
    try:
        found = _EPOCH + timedelta(microseconds=micros)
    except OverflowError as error:
        raise ValueError("it is out of range") from error
    return found.replace(tzinfo=UTC) if zoned else found


def _day(value: int) -> date:
    try:
        return date.fromordinal(_FIRST_DAY + value)
    except (OverflowError, ValueError) as error:
        raise ValueError("it is out of range") from error


def _text(row: Mapping[str, Any], fields: Mapping[str, Field]) -> str:
    shown = {
        name: None if value is None else fields[name].show(value) for name, value in row.items()
    }
    return json.dumps(shown, ensure_ascii=False)

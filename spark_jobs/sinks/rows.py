"""Rows as JSON text; equal rows have equal text, whatever system they come from. Pure functions.

Decimals, times, bytes (Base64), NaN and infinities are strings, so that no reader rounds them. A
key is such a text of the key columns.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Context, Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

Converter = Callable[[Any], Any]
# The digits of the widest DECIMAL; Python's default context has 28.
_DIGITS = Context(prec=38)


@dataclass(frozen=True)
class RowCodec:
    """Converts rows of a table to text.

    Attributes:
        schema: columns that the sink delivers.
        keys: the key columns.
        unsigned: whether -0.0 within arrays, maps and structs is 0.0, as in a ``jsonb``.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    unsigned: bool = False

    @cached_property
    def _converters(self) -> dict[str, Converter]:
        return {one.name: converter(one.type, unsigned=self.unsigned) for one in self.schema}

    def row(self, values: Mapping[str, Any]) -> str:
        """A row as text; values by column are Python objects, or come from such a text."""
        return dumped(
            {
                name: None if (value := values.get(name)) is None else convert(value)
                for name, convert in self._converters.items()
            }
        )

    def key_of(self, row: str) -> str:
        """The key of a row."""
        values = json.loads(row)
        return dumped({name: values[name] for name in self.keys})

    def rows(self, batch: pa.RecordBatch) -> Iterator[tuple[str, str]]:
        """Key and row of all rows of a batch, as text; the batch has the columns of the sink."""
        names = self.schema.names
        columns = [_converted(batch.column(name), self._converters[name]) for name in names]
        for values in zip(*columns, strict=True):
            row = dict(zip(names, values, strict=True))
            yield dumped({name: row[name] for name in self.keys}), dumped(row)


def dumped(values: Mapping[str, Any]) -> str:
    """A mapping as JSON without spaces, in its own order."""
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def converter(kind: pa.DataType, *, unsigned: bool = False) -> Converter:
    """Converts a value of the type, not NULL, to a JSON value.

    Args:
        kind: the type.
        unsigned: as of ``RowCodec``.

    >>> converter(pa.decimal128(12, 2))(Decimal("1E+1"))
    '10.00'
    >>> converter(pa.timestamp("us", tz="UTC"))(datetime(2024, 5, 2, 12, tzinfo=UTC))
    '2024-05-02T12:00:00.000000Z'
    >>> from datetime import date
    >>> converter(pa.float64())(float("nan")), converter(pa.list_(pa.date32()))([date(2024, 5, 2)])
    ('NaN', ['2024-05-02'])
    """
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_integer(kind):
        return int
    if pa.types.is_floating(kind):
        return _single if pa.types.is_float32(kind) else _double
    if pa.types.is_decimal(kind):
        smallest = Decimal(1).scaleb(-kind.scale)
        return lambda value: format(_DIGITS.quantize(Decimal(value), smallest), "f")
    if pa.types.is_timestamp(kind):
        return _instant if kind.tz else _local_time
    if pa.types.is_date(kind):
        return lambda value: value if isinstance(value, str) else value.isoformat()
    return _nested(kind, unsigned=unsigned)


def _nested(kind: pa.DataType, *, unsigned: bool) -> Converter:
    if pa.types.is_struct(kind):
        fields = {field.name: _inner(field.type, unsigned=unsigned) for field in kind}
        return lambda value: {name: to(value.get(name)) for name, to in fields.items()}
    if pa.types.is_map(kind):
        items = _inner(kind.item_type, unsigned=unsigned)
        return lambda value: {
            str(key): items(one)
            for key, one in sorted(_pairs(value), key=lambda pair: str(pair[0]))
        }
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        one = _inner(kind.value_type, unsigned=unsigned)
        return lambda value: [one(item) for item in value]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return str
    return _bytes


def _converted(column: pa.Array, convert: Converter) -> list[Any]:
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _inner(kind: pa.DataType, *, unsigned: bool) -> Converter:
    convert = converter(kind, unsigned=unsigned)
    if unsigned and pa.types.is_floating(kind):
        # The sum of -0.0 and 0.0 is 0.0.
        return lambda value: one + 0.0 if isinstance(one := _given(value, convert), float) else one
    return lambda value: _given(value, convert)


def _given(value: Any, convert: Converter) -> Any:
    return None if value is None else convert(value)


def _pairs(value: Any) -> Sequence[tuple[Any, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else list(value)


def _double(value: Any) -> float | str:
    number = float(value)
    if number != number:  # noqa: PLR0124 - the one value that is not itself
        return "NaN"
    if number in {float("inf"), float("-inf")}:
        return "Infinity" if number > 0 else "-Infinity"
    return number


def _single(value: Any) -> float | str:
    """The nearest 32-bit float, in its shortest form."""
    number = _double(value)
    return (
        number
        if isinstance(number, str)
        else float(struct.unpack("f", struct.pack("f", number))[0])
    )


def _instant(value: datetime | str) -> str:
    if isinstance(value, str):
        return value
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _local_time(value: datetime | str) -> str:
    return value if isinstance(value, str) else value.isoformat(timespec="microseconds")


def _bytes(value: Any) -> str:
    return value if isinstance(value, str) else base64.b64encode(bytes(value)).decode()

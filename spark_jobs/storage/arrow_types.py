"""The Arrow types of Spark SQL types, as Spark itself converts them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pyarrow as pa

from spark_jobs.storage.columns import ColumnSpec

_ARROW = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_OPENING, _CLOSING = "<(", ">)"


def arrow_type(kind: str) -> pa.DataType | None:
    """The Arrow type of a Spark SQL type; None for one that has none, or is written otherwise.

    >>> arrow_type("decimal(12,2)"), arrow_type("date"), arrow_type("variant")
    (Decimal128Type(decimal128(12, 2)), DataType(date32[day]), None)
    >>> arrow_type("map<string,array<struct<a:int>>>")
    MapType(map<string, list<element: struct<a: int32>>>)
    """
    kind = kind.strip()
    if (size := _DECIMAL.fullmatch(kind)) is not None:
        return pa.decimal128(int(size[1]), int(size[2]))
    name, bracket, inner = kind.partition("<")
    if not bracket:
        return _ARROW.get(kind)
    parts = list(_parts(inner.removesuffix(">"))) if inner.endswith(">") else []
    if name == "struct":
        return _struct(parts)
    types = [arrow_type(part) for part in parts]
    if any(one is None for one in types):
        return None
    match name, types:
        case "array", [element]:
            return pa.list_(pa.field("element", element))
        case "map", [key, value]:
            return pa.map_(key, value)
    return None


def arrow_columns(columns: Sequence[ColumnSpec]) -> pa.Schema | None:
    """The Arrow schema of columns; None if a type has none."""
    types = [(one.name, arrow_type(one.type)) for one in columns]
    if any(kind is None for _, kind in types):
        return None
    return pa.schema([pa.field(name, kind) for name, kind in types])


def _struct(parts: Sequence[str]) -> pa.DataType | None:
    fields = []
    for part in parts:
        name, colon, kind = part.partition(":")
        found = arrow_type(kind) if colon else None
        if found is None:
            return None
        fields.append(pa.field(name.strip(), found))
    return pa.struct(fields) if fields else None


def _parts(text: str) -> Iterator[str]:
    """What stands between the commas that are in no further brackets.

    >>> list(_parts("a:decimal(1,0),b:map<int,int>"))
    ['a:decimal(1,0)', 'b:map<int,int>']
    """
    depth = start = 0
    for at, sign in enumerate(text):
        if sign in _OPENING:
            depth += 1
        elif sign in _CLOSING:
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]

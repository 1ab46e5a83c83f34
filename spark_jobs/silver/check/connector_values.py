"""Converts PostgreSQL's text output to the JSON that the Debezium connector writes.

The connector is set up as in ``stack/connector.py``: decimals as strings, times in ISO 8601. The
text comes from a session in UTC with ``datestyle`` ISO. Each function maps a text to JSON.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import time
from decimal import Decimal
from typing import Any

from psycopg.types.hstore import HstoreLoader

from spark_jobs.access.source_tables import ENUM, PostgresType
from spark_jobs.silver.check.connector_shapes import SHAPES
from spark_jobs.silver.parse.casting import SPECIAL_NUMBERS

JsonWriter = Callable[[str], str]
_MICROSECONDS_OF_TIME = 6
# To the connector a month is 365.25 / 12 days.
_MONTH_MICROSECONDS = 2_629_800_000_000
_DAY_MICROSECONDS = 86_400_000_000
# Years after 9999 have a sign in ISO 8601.
_LONG_YEAR = 4


def json_writer(kind: PostgresType) -> Callable[[Any], str] | None:
    """The function that writes values of a type as the connector does; None if it sends none.

    Its argument is a value from psycopg with all scalars as text: str, a list for an array, or
    None.
    """
    if kind.array is None:
        one = _scalar(kind)
        return None if one is None else lambda value: "null" if value is None else one(value)
    element = _scalar(kind) if kind.name in _IN_ARRAYS or kind.kind == ENUM else None
    return None if element is None else _array(element)


def _array(element: JsonWriter) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, list):
            return f"[{','.join(map(write, value))}]"
        return element(value)

    return write


def _scalar(kind: PostgresType) -> JsonWriter | None:
    if kind.kind == ENUM:
        return _text
    match kind.name:
        case "timestamptz":
            digits = _MICROSECONDS_OF_TIME if kind.modifier < 0 else kind.modifier
            return lambda text: _instant(text, digits)
        case "bit" | "varbit":
            return _bit if kind.modifier == 1 else _bits
        case name:
            return _SCALARS.get(name)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _shaped(shape: Callable[[str], dict[str, Any]]) -> JsonWriter:
    return lambda text: json.dumps(shape(text))


def _boolean(text: str) -> str:
    return "true" if text == "t" else "false"


def _numeric(text: str) -> str:
    return _text(SPECIAL_NUMBERS.get(text, text))


def _floating(text: str) -> str:
    """A number in Java's format, which matters if the column is declared as text."""
    if text in SPECIAL_NUMBERS:
        return _text(text)
    number = Decimal(text)
    sign, digits, _ = number.as_tuple()
    places = number.adjusted()
    if -3 <= places < 7:
        plain = format(number, "f")
        return plain if "." in plain else f"{plain}.0"
    text = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{places}"


def _bytes(text: str) -> str:
    return _base64(bytes.fromhex(text.removeprefix("\\x")))


def _base64(value: bytes) -> str:
    return _text(base64.b64encode(value).decode())


def _bit(text: str) -> str:
    return "true" if "1" in text else "false"


def _bits(text: str) -> str:
    """Bits from last to first, in as many bytes as the highest set bit needs."""
    number = int(text or "0", 2)
    return _base64(number.to_bytes((number.bit_length() + 7) // 8, "little"))


def _year(day: str) -> tuple[str, str]:
    """Split a date or time without era into its ISO 8601 year and the rest."""
    number, rest = day.removesuffix(" BC").split("-", 1)
    if day.endswith(" BC"):
        before = 1 - int(number)
        return (f"-{-before:04}" if before else "0000"), rest
    return (f"+{number}" if len(number) > _LONG_YEAR else number), rest


def _endless(text: str) -> bool:
    # The connector writes a date millions of years away, which no table can store.
    return text.endswith("infinity")


def _date(text: str) -> str:
    return _text(text if _endless(text) else f"{'-'.join(_year(text))}Z")


def _timestamp(text: str) -> str:
    return _text(text if _endless(text) else f"{'-'.join(_year(text)).replace(' ', 'T')}Z")


def _instant(text: str, digits: int) -> str:
    if _endless(text):
        return _text(text)
    era = " BC" if text.endswith(" BC") else ""
    year, rest = _year(text.removesuffix(" BC").removesuffix("+00") + era)
    day, clock = rest.split(" ")
    whole, _, fraction = clock.partition(".")
    part = f".{fraction:0<{digits}}" if digits else ""
    return _text(f"{year}-{day}T{whole}{part}Z")


def _time(text: str) -> str:
    # The connector writes 24:00 as 00:00.
    return _text(f"{text.replace('24:00:00', '00:00:00')}Z")


def _time_with_zone(text: str) -> str:
    """A time of day in UTC."""
    at = time.fromisoformat(text.replace("24:00:00", "00:00:00"))
    offset = at.utcoffset()
    shift = 0 if offset is None else int(offset.total_seconds())
    seconds = (at.hour * 3600 + at.minute * 60 + at.second - shift) % 86_400
    clock = f"{seconds // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    return _text(f"{clock}{fraction}Z")


def _interval(text: str) -> str:
    """Microseconds, from text such as ``1 year 2 mons -3 days 04:05:06.7``."""
    if _endless(text):
        return _text(text)
    words = text.split()
    total = 0
    if ":" in words[-1]:
        clock = words.pop()
        hours, minutes, seconds = clock.lstrip("+-").split(":")
        micros = int(Decimal(seconds) * 1_000_000) + int(minutes) * 60_000_000
        total += (int(hours) * 3_600_000_000 + micros) * (-1 if clock.startswith("-") else 1)
    for number, unit in zip(words[::2], words[1::2], strict=True):
        match unit.rstrip("s"):
            case "year":
                total += int(number) * 12 * _MONTH_MICROSECONDS
            case "mon":
                total += int(number) * _MONTH_MICROSECONDS
            case "day":
                total += int(number) * _DAY_MICROSECONDS
    return str(total)


def _hstore(text: str) -> str:
    pairs: dict[str, str | None] = HstoreLoader(0).load(text.encode())
    ordered = {name: pairs[name] for name in _as_java_maps(list(pairs))}
    return _text(json.dumps(ordered, ensure_ascii=False, separators=(",", ":")))


def _as_java_maps(names: list[str]) -> list[str]:
    """Names in the iteration order of a ``java.util.HashMap``, as in the connector's hstore."""
    buckets = 16
    while len(names) > buckets * 3 // 4:
        buckets *= 2

    def bucket(name: str) -> int:
        code = 0
        for (unit,) in struct.iter_unpack("<H", name.encode("utf-16-le")):
            code = (31 * code + unit) & 0xFFFFFFFF
        return (code ^ code >> 16) % buckets

    return sorted(names, key=bucket)


_TEXTS = (
    *("text", "varchar", "bpchar", "char", "name", "uuid", "json", "jsonb", "xml", "citext"),
    *("ltree", "inet", "cidr", "macaddr", "macaddr8", "tsvector", "int4range", "int8range"),
    *("numrange", "tsrange", "tstzrange", "daterange"),
)
_SCALARS: dict[str, JsonWriter] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), str),
    **dict.fromkeys(("float4", "float8"), _floating),
    "bool": _boolean,
    "numeric": _numeric,
    "money": _numeric,
    "bytea": _bytes,
    "date": _date,
    "timestamp": _timestamp,
    "time": _time,
    "timetz": _time_with_zone,
    "interval": _interval,
    "hstore": _hstore,
    **{name: _shaped(shape) for name, shape in SHAPES.items()},
}
# The connector omits array columns of other types.
_IN_ARRAYS = frozenset(
    {
        *("int2", "int4", "int8", "oid", "float4", "float8", "bool", "numeric", "bytea", "date"),
        *("timestamp", "timestamptz", "time", "timetz", "hstore"),
        *_TEXTS,
    }
) - {"name", "xml", "tsvector"}

"""A value of PostgreSQL as the Debezium connector writes it: from the server's text to JSON.

The connector's settings are those of ``stack/connect.py``: decimals as texts, times in ISO 8601.
The server's texts are those of a session in UTC whose ``datestyle`` is ISO. Each function takes a
text and gives a piece of JSON.
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

Told = Callable[[str], str]
_MICROSECONDS_OF_TIME = 6
# The connector takes a month for a twelfth of 365.25 days.
_MONTH_MICROSECONDS = 2_629_800_000_000
_DAY_MICROSECONDS = 86_400_000_000
# A year beyond 9999 has a sign in ISO 8601.
_LONG_YEAR = 4


def told(kind: PostgresType) -> Callable[[Any], str] | None:
    """How the connector writes the values of a type; None where it does not send them.

    The function takes what psycopg gives where every scalar is a text: a text, a list of such for
    an array, or None.
    """
    if kind.array is None:
        one = _scalar(kind)
        return None if one is None else lambda value: "null" if value is None else one(value)
    element = _scalar(kind) if kind.name in _IN_ARRAYS or kind.kind == ENUM else None
    return None if element is None else _array(element)


def _array(element: Told) -> Callable[[Any], str]:
    def write(value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, list):
            return f"[{','.join(map(write, value))}]"
        return element(value)

    return write


def _scalar(kind: PostgresType) -> Told | None:
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


def _shaped(shape: Callable[[str], dict[str, Any]]) -> Told:
    return lambda text: json.dumps(shape(text))


def _boolean(text: str) -> str:
    return "true" if text == "t" else "false"


def _numeric(text: str) -> str:
    return _text(SPECIAL_NUMBERS.get(text, text))


def _floating(text: str) -> str:
    """A number as Java writes it, which counts where it is declared as a text."""
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
    """Bits from the last to the first, in as many bytes as the highest one needs."""
    number = int(text or "0", 2)
    return _base64(number.to_bytes((number.bit_length() + 7) // 8, "little"))


def _year(day: str) -> tuple[str, str]:
    """A day or a time without its era, with the year as ISO 8601 counts it; and what follows."""
    number, rest = day.removesuffix(" BC").split("-", 1)
    if day.endswith(" BC"):
        before = 1 - int(number)
        return (f"-{-before:04}" if before else "0000"), rest
    return (f"+{number}" if len(number) > _LONG_YEAR else number), rest


def _endless(text: str) -> bool:
    # The connector writes a day some million years away; no table can hold either.
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
    # The end of a day is the beginning of one to the connector.
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
    """Microseconds, of the server's text ``1 year 2 mons -3 days 04:05:06.7``."""
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
    """Names in the order of a ``java.util.HashMap``, in which the connector writes an hstore."""
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
_SCALARS: dict[str, Told] = {
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
# The connector leaves columns out that are arrays of any other type.
_IN_ARRAYS = frozenset(
    {
        *("int2", "int4", "int8", "oid", "float4", "float8", "bool", "numeric", "bytea", "date"),
        *("timestamp", "timestamptz", "time", "timetz", "hstore"),
        *_TEXTS,
    }
) - {"name", "xml", "tsvector"}

"""Parses CSV fields as values of the declared type, exactly or not at all."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_POINT = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_FLOATING = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
)
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
Reader = Callable[[str], Any]


def reader(kind: str) -> Reader:
    """The parser of a Spark SQL type; it raises ValueError.

    >>> reader("decimal(5,2)")("12.50")
    Decimal('12.50')
    """
    if kind in _BITS:
        return lambda text: _whole(text, kind)
    if kind.startswith("decimal"):
        precision, scale = _size(kind)
        return lambda text: _decimal(text, precision, scale)
    readers: dict[str, Reader] = {
        "boolean": _boolean,
        "double": _double,
        "string": str,
        "date": _date,
        "timestamp": lambda text: _time(text, zoned=True),
        "timestamp_ntz": lambda text: _time(text, zoned=False),
    }
    return readers[kind]


def _size(kind: str) -> tuple[int, int]:
    precision, scale = kind.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _whole(text: str, kind: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("it is not an integer")
    value, limit = int(text), 2 ** (_BITS[kind] - 1)
    if not -limit <= value < limit:
        raise ValueError("it is out of the type's range")
    return value


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    if not _POINT.fullmatch(text):
        raise ValueError("it is not a decimal number")
    whole, _, fraction = text.lstrip("+-").partition(".")
    fraction = fraction.rstrip("0")
    if len(fraction) > scale:
        raise ValueError(f"it has more than {scale} digits after the point")
    if len(whole.lstrip("0")) > precision - scale:
        raise ValueError(f"it has more than {precision - scale} digits before the point")
    # Build the decimal from digits: arithmetic rounds to 28 digits.
    digits = tuple(map(int, whole + fraction.ljust(scale, "0")))
    value = Decimal((int(text.startswith("-")), digits, -scale))
    return value or value.copy_abs()


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it is neither true nor false")
    return text.lower() == "true"


def _double(text: str) -> float:
    if not _FLOATING.fullmatch(text) or not math.isfinite(value := float(text)):
        raise ValueError("it is not a finite number")
    # Turn -0.0 into 0.0: they are equal, so a reload would not see the difference.
    return value + 0.0


def _date(text: str) -> date:
    if not _DATE.fullmatch(text):
        raise ValueError("it is not written as YYYY-MM-DD")
    return date.fromisoformat(text)


def _time(text: str, *, zoned: bool) -> datetime:
    match = _TIME.fullmatch(text)
    if not match:
        raise ValueError("it is not written as YYYY-MM-DD HH:MM:SS")
    if zoned and not match["zone"]:
        raise ValueError("it has no time zone: end it with Z or +02:00")
    if not zoned and match["zone"]:
        raise ValueError("it has a time zone, but the type does not")
    value = datetime.fromisoformat(text)
    try:
        return value.astimezone(UTC) if zoned else value
    except OverflowError as error:
        raise ValueError("it is out of range") from error

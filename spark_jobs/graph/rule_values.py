"""Which values of an expectation can be compared with a column, by the column's type."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Final

_NUMERIC: Final = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TEXT: Final = ("string", "varchar", "char")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?"
)
_LARGEST: Final = 2**63
# Spellings that differ between Java's regular expressions, which judge, and Python's.
_JAVA_GROUP: Final = re.compile(r"\(\?<(?=[A-Za-z])")
_JAVA_CLASS: Final = re.compile(r"\\[pP]\{\w+\}")


class Family(StrEnum):
    """Types whose values compare with each other."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TIME = "time"
    FLAG = "true or false"
    BYTES = "bytes"
    # Arrays, maps and structs.
    NESTED = "nested"
    UNKNOWN = "unknown"


def family(kind: str) -> Family:
    """The family of a Spark type; "" is a type that only Spark knows.

    >>> family("decimal(12,2)").name, family("array<int>").name, family("").name
    ('NUMBER', 'NESTED', 'UNKNOWN')
    """
    base = kind.partition("(")[0]
    if base in _NUMERIC:
        return Family.NUMBER
    if base in _TEXT:
        return Family.TEXT
    simple = {
        "": Family.UNKNOWN,
        "date": Family.DATE,
        "timestamp": Family.TIME,
        "timestamp_ntz": Family.TIME,
        "boolean": Family.FLAG,
        "binary": Family.BYTES,
    }
    return simple.get(base, Family.NESTED)


def value_problem(value: Any, kind: str) -> str | None:
    """Why a value of a suite cannot be compared with a column of a type; None if it can.

    >>> value_problem("2026-02-30", "date")
    "'2026-02-30' is not a date such as 2026-01-31"
    >>> value_problem(0.5, "decimal(12,2)") is None
    True
    """
    match family(kind):
        case Family.NUMBER:
            fits, wanted = number(value), "a number"
        case Family.TEXT:
            fits, wanted = isinstance(value, str), "text"
        case Family.DATE:
            fits, wanted = _is_date(value), "a date such as 2026-01-31"
        case Family.TIME:
            wanted = "a time such as 2026-01-31 12:00:00"
            fits = _is_time(value, zoned=kind == "timestamp")
        case Family.FLAG:
            fits, wanted = isinstance(value, bool), "true or false"
        case _:
            fits, wanted = False, "comparable with the column"
    return None if fits else f"{value!r} is not {wanted}"


def number(value: Any) -> bool:
    """Whether a value is a number that Spark can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float):
        return math.isfinite(value)
    return -_LARGEST <= value < _LARGEST


def range_problem(least: Any, most: Any) -> str | None:
    """Why two bounds are not a range; None if they are one.

    >>> range_problem("2026-01-31", "2026-01-31 12:00:00") is None, range_problem(2, 1.5)
    (True, '2 is above 1.5')
    """
    if isinstance(least, str) and isinstance(most, str):
        first, last = datetime.fromisoformat(least), datetime.fromisoformat(most)
        if (first.tzinfo is None) != (last.tzinfo is None):
            return f"only one of {least!r} and {most!r} has a time zone"
        return f"{least!r} is above {most!r}" if first > last else None
    return f"{least!r} is above {most!r}" if least > most else None


def regex_problem(value: Any) -> str | None:
    r"""Why a text is not a regular expression of Java; None if Python finds no mistake.

    >>> regex_problem(r"^(?<year>\p{Digit}+)$") is None, regex_problem("(?P<year>x)")
    (True, 'Java writes a named group as (?<name>...)')
    """
    if not isinstance(value, str):
        return f"{value!r} is not text"
    if "(?P" in value:
        return "Java writes a named group as (?<name>...)"
    try:
        re.compile(_JAVA_CLASS.sub(r"\\w", _JAVA_GROUP.sub("(?P<", value)))
    except (re.error, OverflowError, RecursionError) as error:
        return f"{value!r} is not a regular expression: {error}"
    return None


def _is_date(value: Any) -> bool:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_time(value: Any, *, zoned: bool) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        told = datetime.fromisoformat(value)
    except ValueError:
        return False
    return zoned or told.tzinfo is None

"""The lines of a JSON Lines file: an object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from spark_jobs.bronze.seed_rows import Field, SeedLine, as_text
from spark_jobs.bronze.seed_values import reader

_MARK = b"\xef\xbb\xbf"
# Larger powers of ten fit no DECIMAL, and would take a gigabyte as digits.
_MOST_EXPONENT = 80


class _Number(str):
    """A number as it is written, because a float would round it."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """The members of an object in their order, with repeated names."""


def jsonl_field(kind: str) -> Field:
    """Reads the values of a Spark SQL type.

    As in the records of a topic, a text with a number is a number, and a number is a text.
    """
    read = reader(kind)

    def convert(value: Any) -> Any:
        if isinstance(value, list):
            raise ValueError("it is an object or an array")  # noqa: TRY004 - rejects the row
        if isinstance(value, bool):
            return read("true" if value else "false")
        if isinstance(value, _Number) and kind.startswith("decimal"):
            return read(_plain(value))
        value.encode("utf-8")
        return read(str(value))

    return Field(convert, lambda value: value if isinstance(value, str) else json.dumps(value))


def jsonl_lines(content: bytes, columns: list[str]) -> Iterator[SeedLine]:
    """The lines of a file; a column that an object does not have is NULL.

    A line with white space only is no line of the file: the last one ends with a line end.
    """
    known = set(columns)
    for number, line in enumerate(content.removeprefix(_MARK).split(b"\n"), start=1):
        if not line.strip():
            continue
        values, problem = _values(line, known)
        yield SeedLine(number, values, partial(as_text, line.rstrip(b"\r")), problem)


def _values(line: bytes, known: set[str]) -> tuple[dict[str, Any] | None, str]:
    try:
        found = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=_Object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse,
        )
    except UnicodeDecodeError:
        return None, "it is not UTF-8"
    except json.JSONDecodeError as error:
        return None, f"it is not JSON: {error.msg} at character {error.colno}"
    except (ValueError, RecursionError) as error:
        return None, f"it is not JSON: {error}"
    if not isinstance(found, _Object):
        return None, "it is not an object"
    values: dict[str, Any] = dict.fromkeys(known)
    names = [name for name, _ in found]
    for name, value in found:
        if name not in known:
            return None, f"{name!r} is no declared column"
        if names.count(name) > 1:
            return None, f"{name} is there twice"
        values[name] = value
    return values, ""


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no value")


def _plain(number: str) -> str:
    """A number without an exponent, if it has a reasonable one."""
    if "e" not in number.lower():
        return number
    try:
        value = Decimal(number)
    except InvalidOperation:
        # Larger than the largest exponent of a Decimal.
        return number
    if not value:
        return "0"
    return number if abs(value.adjusted()) > _MOST_EXPONENT else format(value, "f")

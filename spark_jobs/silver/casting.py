"""A JSON value's text to a declared type, or the knowledge that it does not fit.

Nothing is guessed: a number is no point in time, "yes" is no Boolean, a decimal that would have to
be rounded does not fit. Every conversion is a ``try`` form, so no value can end a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import SourceFormat

_TIME = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True)
class Typed:
    """A column's value, and whether there was a text that did not fit its type."""

    value: Column
    mismatch: Column


def typed_column(image: Column, path: str, type_name: str, *, origin: SourceFormat) -> Typed:
    """The value at a path of a variant as a declared type.

    Args:
        image: a variant that holds an object.
        path: a JSON path below it.
        type_name: a Spark SQL type in lower case.
        origin: Debezium's own forms (a time without a zone is UTC, NaN is a number) are taken
            from Debezium only.
    """
    return typed_text(text_at(image, path), type_name, origin=origin, image=image, path=path)


def text_at(image: Column, path: str) -> Column:
    """The text of the value at a path; an object or an array as JSON, NULL for null."""
    return sf.try_variant_get(image, path, "string")


def typed_text(
    text: Column, type_name: str, *, origin: SourceFormat, image: Column, path: str
) -> Typed:
    """As ``typed_column``, for a text that was already taken."""
    value = _converter(type_name, origin)(text)
    if value is None:
        value = sf.try_variant_get(image, path, type_name)
    return Typed(value, text.isNotNull() & value.isNull())


def _converter(type_name: str, origin: SourceFormat) -> Callable[[Column], Column | None]:
    decimal = _DECIMAL.fullmatch(type_name)
    if decimal:
        return lambda text: _decimal(text, int(decimal[1]), int(decimal[2]))
    if type_name in _WHOLE:
        return lambda text: text.try_cast(type_name)
    zone = f"{_ZONE}?" if origin is SourceFormat.DEBEZIUM else _ZONE
    simple: dict[str, Callable[[Column], Column | None]] = {
        "string": lambda text: text,
        "boolean": _boolean,
        "float": lambda text: _floating(text, type_name, origin),
        "double": lambda text: _floating(text, type_name, origin),
        "date": lambda text: _matching(text, r"\d{4}-\d{2}-\d{2}Z?", "date"),
        "timestamp": lambda text: _matching(text, _TIME + zone, "timestamp"),
        "timestamp_ntz": lambda text: _matching(text, f"{_TIME}Z?", "timestamp_ntz"),
        "binary": lambda text: sf.try_to_binary(text, sf.lit("base64")),
    }
    return simple.get(type_name, lambda _: None)


def _boolean(text: Column) -> Column:
    return sf.when(text == "true", sf.lit(True)).when(text == "false", sf.lit(False))  # noqa: FBT003


def _floating(text: Column, type_name: str, origin: SourceFormat) -> Column:
    value = text.try_cast(type_name)
    if origin is SourceFormat.DEBEZIUM:
        return value
    finite = ~sf.isnan(value) & (sf.abs(value) < sf.lit(float("inf")))
    return sf.when(finite, value)


def _decimal(text: Column, precision: int, scale: int) -> Column:
    # The cast rounds; compared with as many fraction digits as fit beside the same number of
    # whole digits, a value that was rounded differs.
    exact = text.try_cast(f"decimal(38,{38 - precision + scale})")
    value = text.try_cast(f"decimal({precision},{scale})")
    return sf.when(value == exact, value)


def _matching(text: Column, pattern: str, type_name: str) -> Column:
    # Spark's cast takes "2024" and "12:00" for points in time.
    return sf.when(text.rlike(f"^{pattern}$"), text.try_cast(type_name))

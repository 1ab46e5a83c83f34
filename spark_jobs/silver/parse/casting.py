"""A JSON scalar's text to a declared type, or NULL where it does not fit.

Nothing is guessed: a number is no point in time, "yes" is no Boolean, a decimal that would have to
be rounded does not fit. Every conversion is a ``try`` form, so no value can end a query.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.silver.parse.exact_numbers import as_sent

_DAY = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)"
_YEARS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_BOUNDED = re.compile(r"(?:var)?char\((\d+)\)")
# What Debezium writes for these values of a NUMERIC column, by PostgreSQL's words for them. A text
# that happens to be one of these words cannot be told from it.
SPECIAL_NUMBERS = {
    "NaN": "NAN",
    "Infinity": "POSITIVE_INFINITY",
    "-Infinity": "NEGATIVE_INFINITY",
}
# A number's text may have this many characters, its exponent this many digits: with more of either,
# Java takes minutes to read it as a decimal, or raises an error that no ``try`` catches.
MOST_SIGNS = 1000
MOST_EXPONENT_DIGITS = 3
_EXPONENT = rf"^\s*[+-]?(\d*)(?:\.(\d*))?[eE]([+-]?0*\d{{1,{MOST_EXPONENT_DIGITS}}})\s*$"
_ZERO = r"^\s*[+-]?(?:0+\.?0*|\.0+)[eE]"
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


def text_at(image: Column, path: str) -> Column:
    """The text of the value at a path; an object or an array as JSON, NULL for null.

    Args:
        image: a variant of a text that ``exact_numbers.marked`` gave.
        path: a JSON path below it.
    """
    return as_sent(sf.try_variant_get(image, path, "string"))


def scalar(text: Column, type_name: str, *, origin: SourceFormat) -> Column:
    """A text as a declared type; NULL where it is NULL or does not fit.

    Args:
        text: what ``text_at`` gives.
        type_name: a Spark SQL type without parts, in lower case; VARCHAR and CHAR become STRING.
        origin: Debezium's own form of a time without a zone, which is UTC, is taken from Debezium
            only. NaN and infinities are numbers in all formats but JSON.
    """
    decimal, bounded = _DECIMAL.fullmatch(type_name), _BOUNDED.fullmatch(type_name)
    if decimal:
        return _decimal(text, int(decimal[1]), int(decimal[2]))
    if bounded:
        return sf.when(sf.char_length(text) <= int(bounded[1]), text)
    if type_name in _WHOLE:
        return text.try_cast(type_name)
    zone = f"{_ZONE}?" if origin is SourceFormat.DEBEZIUM else _ZONE
    simple: dict[str, Callable[[], Column]] = {
        "string": lambda: text,
        "boolean": lambda: _boolean(text),
        "float": lambda: _floating(text, type_name, origin),
        "double": lambda: _floating(text, type_name, origin),
        # Debezium writes a day with a Z, which Spark's cast refuses.
        "date": lambda: _matching(sf.regexp_replace(text, "Z$", ""), _DAY, "date"),
        "timestamp": lambda: _matching(text, _TIME + zone, "timestamp"),
        "timestamp_ntz": lambda: _matching(text, f"{_TIME}Z?", "timestamp_ntz"),
        "binary": lambda: sf.try_to_binary(text, sf.lit("base64")),
    }
    return simple[type_name]()


def _boolean(text: Column) -> Column:
    return sf.when(text == "true", sf.lit(True)).when(text == "false", sf.lit(False))  # noqa: FBT003


def _floating(text: Column, type_name: str, origin: SourceFormat) -> Column:
    if origin is SourceFormat.DEBEZIUM:
        for word, sent in SPECIAL_NUMBERS.items():
            text = sf.when(text == sent, word).otherwise(text)
    # Java's suffixes of a type are no part of a number.
    value = sf.when(~text.rlike(r"\d[dDfF]\s*$"), text.try_cast(type_name))
    if origin is not SourceFormat.JSON:
        return value
    finite = ~sf.isnan(value) & (sf.abs(value) < sf.lit(float("inf")))
    return sf.when(finite, value)


def _decimal(text: Column, precision: int, scale: int) -> Column:
    kind = f"decimal({precision},{scale})"
    # The cast rounds. What it may leave out are zeros.
    value = text.try_cast(kind)
    plain = text.rlike(rf"^\s*[+-]?\d*(\.\d{{0,{scale}}}0*)?\s*$")
    short = sf.octet_length(text) <= MOST_SIGNS
    shifted = sf.when(text.rlike(_EXPONENT), _shifted(text, value, kind, scale))
    return sf.when(short, sf.when(plain, value).otherwise(shifted))


def _shifted(text: Column, value: Column, kind: str, scale: int) -> Column:
    """A number with an exponent, where it has no digit beyond the scale."""
    whole, shift = (sf.regexp_extract(text, _EXPONENT, group) for group in (1, 3))
    fraction = sf.rtrim(sf.regexp_extract(text, _EXPONENT, 2), sf.lit("0"))
    zeros = sf.length(whole) - sf.length(sf.rtrim(whole, sf.lit("0")))
    # The power of ten of the last digit that is no zero.
    last = sf.when(sf.length(fraction) > 0, -sf.length(fraction)).otherwise(zeros)
    nothing = sf.when(text.rlike(_ZERO), sf.lit(0).cast(kind))
    return sf.coalesce(nothing, sf.when(last + shift.try_cast("int") >= -scale, value))


def _matching(text: Column, pattern: str, type_name: str) -> Column:
    # Spark's cast takes "2024" and "12:00" for points in time, and its range is wider than that
    # of Python and of Arrow's readers: one value beyond the years 1 to 9999 would make the table
    # unreadable for them.
    value = text.try_cast(type_name)
    first, last = (sf.lit(bound).cast(type_name) for bound in _YEARS)
    return sf.when(text.rlike(f"^{pattern}$") & value.between(first, last), value)

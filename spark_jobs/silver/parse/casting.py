"""Casts the text of a JSON scalar to a declared type; NULL if it does not fit.

Nothing is guessed: a number is not a timestamp, "yes" is not a Boolean, a decimal is never rounded.
All casts are ``try`` forms, so that no value can fail a query.
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
# PostgreSQL's special NUMERIC values, and the words that Debezium writes for them. A text that
# equals such a word is indistinguishable.
SPECIAL_NUMBERS = {
    "NaN": "NAN",
    "Infinity": "POSITIVE_INFINITY",
    "-Infinity": "NEGATIVE_INFINITY",
}
# Limits of a number's text and of its exponent. Beyond them Java takes minutes to parse a decimal,
# or raises an error that no ``try`` form catches.
MOST_CHARACTERS = 1000
MOST_EXPONENT_DIGITS = 3
_EXPONENT = rf"^\s*[+-]?(\d*)(?:\.(\d*))?[eE]([+-]?0*\d{{1,{MOST_EXPONENT_DIGITS}}})\s*$"
_ZERO = r"^\s*[+-]?(?:0+\.?0*|\.0+)[eE]"
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})


def text_at(image: Column, path: str) -> Column:
    """The text of the value at a path; objects and arrays as JSON, null as NULL.

    Args:
        image: a variant; numbers in it may be marked, see ``exact_numbers``.
        path: a JSON path in it.
    """
    return as_sent(sf.try_variant_get(image, path, "string"))


def scalar(text: Column, type_name: str, *, origin: SourceFormat) -> Column:
    """Cast a text to a declared type; NULL if it is NULL or does not fit.

    Args:
        text: from ``text_at``.
        type_name: a scalar Spark SQL type in lower case; VARCHAR and CHAR become STRING.
        origin: the source's format. Times without a zone are accepted from Debezium only, as UTC.
            NaN and infinities are numbers in all formats except JSON.
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
        # Debezium appends Z to dates, which Spark's cast does not accept.
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
    # Do not accept Java's type suffixes, as in 1.0d.
    value = sf.when(~text.rlike(r"\d[dDfF]\s*$"), text.try_cast(type_name))
    finite = ~sf.isnan(value) & (sf.abs(value) < sf.lit(float("inf")))
    if origin is SourceFormat.JSON:
        return sf.when(finite, value)
    # The cast makes infinity of a number that is too large; infinity itself comes as a word.
    return sf.when(finite | ~text.rlike(r"\d"), value)


def _decimal(text: Column, precision: int, scale: int) -> Column:
    kind = f"decimal({precision},{scale})"
    # The cast would round; only trailing zeros may be dropped.
    value = text.try_cast(kind)
    plain = text.rlike(rf"^\s*[+-]?\d*(\.\d{{0,{scale}}}0*)?\s*$")
    short = sf.octet_length(text) <= MOST_CHARACTERS
    shifted = sf.when(text.rlike(_EXPONENT), _shifted(text, value, kind, scale))
    return sf.when(short, sf.when(plain, value).otherwise(shifted))


def _shifted(text: Column, value: Column, kind: str, scale: int) -> Column:
    """Cast a number with an exponent, if it has no digit beyond the scale."""
    whole, shift = (sf.regexp_extract(text, _EXPONENT, group) for group in (1, 3))
    fraction = sf.rtrim(sf.regexp_extract(text, _EXPONENT, 2), sf.lit("0"))
    zeros = sf.length(whole) - sf.length(sf.rtrim(whole, sf.lit("0")))
    # The power of ten of the last nonzero digit.
    last = sf.when(sf.length(fraction) > 0, -sf.length(fraction)).otherwise(zeros)
    nothing = sf.when(text.rlike(_ZERO), sf.lit(0).cast(kind))
    return sf.coalesce(nothing, sf.when(last + shift.try_cast("int") >= -scale, value))


def _matching(text: Column, pattern: str, type_name: str) -> Column:
    # Spark's cast accepts "2024" and "12:00" as timestamps, and years outside of 1 to 9999, which
    # would make the table unreadable in Python and Arrow.
    value = text.try_cast(type_name)
    first, last = (sf.lit(bound).cast(type_name) for bound in _YEARS)
    return sf.when(text.rlike(f"^{pattern}$") & value.between(first, last), value)

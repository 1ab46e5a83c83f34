"""Expressions in DuckDB's SQL, each with its Spark type."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spark_jobs.definitions.column_types import MOST_DIGITS
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import (
    BOOLEAN,
    DATE,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    Kind,
    as_decimal,
    common_kind,
    decimal,
)

# Division that rounds half up, which DuckDB lacks; created once per database.
MACRO = (
    "CREATE OR REPLACE MACRO __half_up(n, d) AS"
    " (CASE WHEN (n < 0) = (d < 0) THEN 1 ELSE -1 END)::HUGEINT"
    " * ((2::HUGEINT * abs(n) + abs(d)) // (2::HUGEINT * abs(d)))"
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# DuckDB reads 24:00:00 as the next day.
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}( ([01]\d|2[0-3]):\d{2}:\d{2}(\.\d{1,6})?(\+00:00)?)?")


@dataclass(frozen=True)
class Typed:
    """An expression.

    Attributes:
        sql: for DuckDB, in parentheses if needed.
        kind: its type in Spark.
        literal: the text of a numeric or string literal.
    """

    sql: str
    kind: Kind
    literal: str | None = None


def quoted(name: str) -> str:
    """An identifier for DuckDB.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text_of(value: str) -> str:
    """A string literal for DuckDB."""
    return "'" + value.replace("'", "''") + "'"


def number(text: str) -> Typed:
    """A numeric literal, typed by its digits like in Spark.

    >>> str(number("0.06").kind), str(number("3000000000").kind)
    ('decimal(2,2)', 'bigint')

    Raises:
        NotTranslatedError: it does not fit a supported type.
    """
    if re.fullmatch(r"-?\d+", text):
        value = int(text)
        kind = Kind("int") if -(2**31) <= value < 2**31 else Kind("bigint")
        if not -(2**63) <= value < 2**63:
            raise NotTranslatedError("a whole number beyond BIGINT")
    elif re.fullmatch(r"-?\d*\.\d*", text):
        whole, _, behind = text.lstrip("-").partition(".")
        digits = len(whole.lstrip("0")) + len(behind)
        if digits > MOST_DIGITS:
            raise NotTranslatedError(f"a number of {digits} digits")
        kind = decimal(max(digits, 1), len(behind))
    else:
        raise NotTranslatedError(f"the number {text}")
    return Typed(f"CAST({text_of(text)} AS {kind.in_duckdb})", kind, text)


def exact_literal(value: Typed) -> Typed:
    """An integer literal next to a decimal: Spark types it as a decimal of its digits."""
    if value.literal is None or not value.kind.is_integer:
        return value
    digits = len(value.literal.lstrip("-").lstrip("0")) or 1
    kind = Kind("decimal", digits, 0)
    return Typed(f"CAST({text_of(value.literal)} AS {kind.in_duckdb})", kind, value.literal)


def converted(value: Typed, kind: Kind) -> Typed:
    """A value cast to a type, as by Spark's CAST in ANSI mode.

    Raises:
        NotTranslatedError: the engines' results may differ.
    """
    if value.kind == kind:
        return value
    if value.kind == NULL:
        # NULL, or what raises an error.
        return Typed(f"CAST({value.sql} AS {kind.in_duckdb})", kind)
    if value.kind == STRING and value.literal is not None:
        return _read(value.literal, kind)
    if not _cast_agrees(value.kind, kind):
        raise NotTranslatedError(f"a conversion of {value.kind} to {kind}")
    inner = f"trunc({value.sql})" if value.kind.is_decimal and kind.is_integer else value.sql
    cast = f"CAST({inner} AS {kind.in_duckdb})"
    if (value.kind, kind) == (DATE, STRING):
        # Of other years, the engines write the text differently: +10000-01-01, 0001-01-01 (BC).
        usual = f"{value.sql} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        fault = "error('the text of a date beyond the years 1 to 9999')"
        cast = f"(CASE WHEN NOT {usual} THEN {fault} ELSE {cast} END)"
    return Typed(cast, kind)


def _cast_agrees(source: Kind, target: Kind) -> bool:
    """Whether both engines cast one type to the other alike."""
    if source.is_exact and target.is_exact:
        return True
    if target == DOUBLE:
        return source.is_integer
    if target == STRING:
        return source.is_integer or source in {BOOLEAN, DATE}
    return (source, target) in {(TIMESTAMP, DATE), (DATE, TIMESTAMP)}


def _read(text: str, kind: Kind) -> Typed:
    """A date or timestamp from a string literal; only Spark parses other strings."""
    if kind == DATE and _DATE.fullmatch(text):
        return Typed(f"DATE {text_of(text)}", kind)
    if kind == TIMESTAMP and _TIMESTAMP.fullmatch(text):
        moment = text.removesuffix("+00:00") if ":" in text else f"{text} 00:00:00"
        return Typed(f"TIMESTAMPTZ {text_of(f'{moment}+00')}", kind)
    raise NotTranslatedError(f"the text {text!r} as {kind}")


def in_common(values: list[Typed]) -> list[Typed]:
    """Values cast to the type in which Spark compares them or returns one of them.

    Raises:
        NotTranslatedError: there is no type that both engines agree on.
    """
    kinds = {one.kind for one in values}
    # A string literal next to a date or timestamp is parsed as one.
    moments = kinds & {DATE, TIMESTAMP}
    if len(moments) == 1:
        kind = moments.pop()
        values = [converted(one, kind) for one in values]
    kind = common_kind(one.kind for one in values)
    return [converted(one, kind) for one in values]


def raw(value: Typed) -> str:
    """A decimal's unscaled value, as a 128-bit integer."""
    kind = as_decimal(value.kind)
    if kind.scale == 0:
        return f"CAST({value.sql} AS HUGEINT)"
    shift = Kind("decimal", kind.scale + 1, 0)
    return f"CAST({value.sql} * CAST('1{'0' * kind.scale}' AS {shift.in_duckdb}) AS HUGEINT)"


def pointed(whole: str, kind: Kind) -> str:
    """A 128-bit unscaled value as a decimal with digits behind the point."""
    unit = f"CAST('0.{'0' * (kind.scale - 1)}1' AS DECIMAL({kind.scale},{kind.scale}))"
    return f"CAST(CAST({whole} AS DECIMAL(38,0)) * {unit} AS {kind.in_duckdb})"


def divided(left: Typed, right: Typed, kind: Kind) -> Typed:
    """The quotient of two exact values, rounded half up; an error if the divisor is 0."""
    # Never below 0: of 38 digits, Spark gives up those of the quotient that the dividend lacks.
    shift = kind.scale + as_decimal(right.kind).scale - as_decimal(left.kind).scale
    above = f"({raw(left)} * CAST('1{'0' * shift}' AS HUGEINT))"
    return Typed(pointed(f"__half_up({above}, {raw(right)})", kind), kind)

"""Spark's types and type rules, for the types that both engines have.

The rules for decimals are those of Spark's ``DecimalPrecision`` and ``DecimalType``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from spark_jobs.definitions.column_types import MOST_DIGITS
from spark_jobs.graph.decimal_types import (
    Size,
    limited,
    product_size,
    quotient_size,
    sum_size,
)
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.type_agreement import agreement

# Digits that Spark keeps when it negates a decimal.
_MOST_NEGATED = 34
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
# Integer types from the narrowest, with their digits as a decimal.
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
INTERVAL = "interval"


@dataclass(frozen=True)
class Kind:
    """A Spark type.

    Attributes:
        name: as in Spark SQL, without decimal digits; ``null`` for a bare NULL.
        precision: total digits of a decimal.
        scale: digits of a decimal after the point.
    """

    name: str
    precision: int = 0
    scale: int = 0

    @property
    def is_decimal(self) -> bool:
        return self.name == "decimal"

    @property
    def is_integer(self) -> bool:
        return self.name in _INTEGERS

    @property
    def is_exact(self) -> bool:
        """Whether it is an integer or a decimal."""
        return self.is_decimal or self.is_integer

    @property
    def is_number(self) -> bool:
        return self.is_exact or self == DOUBLE

    @property
    def is_compared(self) -> bool:
        """Whether both engines agree on equality; doubles have two zeros."""
        return agreement(str(self)).compared

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.is_decimal else self.name

    @property
    def in_duckdb(self) -> str:
        """The type's name in DuckDB.

        Raises:
            NotTranslatedError: DuckDB has no such type, or the type is unknown.
        """
        if self.is_decimal:
            return f"DECIMAL({self.precision},{self.scale})"
        found = agreement(self.name).duckdb
        if found is None:
            raise NotTranslatedError(f"a value of type {self}")
        return found


BOOLEAN, INT, BIGINT, DOUBLE = Kind("boolean"), Kind("int"), Kind("bigint"), Kind("double")
STRING, DATE, TIMESTAMP, NULL = Kind("string"), Kind("date"), Kind("timestamp"), Kind("null")
TIMESTAMP_NTZ = Kind("timestamp_ntz")


def has_exact_negative(kind: Kind) -> bool:
    """Whether Spark negates all values of an exact type exactly: it rounds to 34 digits.

    >>> has_exact_negative(INT), has_exact_negative(STRING)
    (True, False)
    >>> [has_exact_negative(Kind("decimal", digits, 2)) for digits in (34, 35)]
    [True, False]
    """
    return kind.is_integer or (kind.is_decimal and kind.precision <= _MOST_NEGATED)


def kind_of(text: str) -> Kind | None:
    """Parse a Spark SQL type; None if the engines do not both have it.

    >>> str(kind_of("DECIMAL(15, 2)")), kind_of("map<string,int>")
    ('decimal(15,2)', None)
    """
    lowered = text.lower().strip()
    found = _DECIMAL.fullmatch(lowered)
    if found:
        return Kind("decimal", int(found[1]), int(found[2]))
    lowered = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}.get(
        lowered, lowered
    )
    known = agreement(lowered).duckdb is not None
    return Kind(lowered) if known and lowered != "decimal" else None


def decimal(precision: int, scale: int) -> Kind:
    """A decimal, limited to 38 digits like the result of a Spark operation.

    >>> str(decimal(49, 6)), str(decimal(47, 12))
    ('decimal(38,6)', 'decimal(38,6)')
    """
    return Kind("decimal", *limited(precision, scale))


def as_decimal(kind: Kind) -> Kind:
    """The smallest decimal type that contains all values of an exact type."""
    return kind if kind.is_decimal else Kind("decimal", _INTEGERS[kind.name], 0)


def sum_of(left: Kind, right: Kind) -> Kind:
    """The type of ``+`` and ``-`` over two exact types.

    >>> str(sum_of(kind_of("decimal(1,0)"), kind_of("decimal(15,2)")))
    'decimal(16,2)'
    """
    if left.is_integer and right.is_integer:
        return wider_integer(left, right)
    return Kind("decimal", *sum_size(_size(left), _size(right)))


def product_of(left: Kind, right: Kind) -> Kind:
    """The type of ``*`` over two exact types."""
    if left.is_integer and right.is_integer:
        return wider_integer(left, right)
    return Kind("decimal", *product_size(_size(left), _size(right)))


def quotient_of(left: Kind, right: Kind) -> Kind:
    """The type of ``/`` over two exact types, at least one of them a decimal."""
    return Kind("decimal", *quotient_size(_size(left), _size(right)))


def _size(kind: Kind) -> Size:
    exact = as_decimal(kind)
    return exact.precision, exact.scale


def wider_integer(left: Kind, right: Kind) -> Kind:
    """The wider of two integer types."""
    return max(left, right, key=lambda one: _INTEGERS[one.name])


def common_kind(kinds: Iterable[Kind]) -> Kind:
    """The type in which Spark compares values, or returns one of several.

    >>> str(common_kind([kind_of("int"), kind_of("decimal(15,2)")]))
    'decimal(15,2)'

    Raises:
        NotTranslatedError: Spark would parse a string.
    """
    found = NULL
    for kind in kinds:
        found = _common(found, kind)
    return found


def _common(one: Kind, other: Kind) -> Kind:
    if other in {one, NULL}:
        return one
    if one == NULL:
        return other
    if one.is_integer and other.is_integer:
        return wider_integer(one, other)
    if one.is_exact and other.is_exact:
        left, right = as_decimal(one), as_decimal(other)
        scale = max(left.scale, right.scale)
        whole = max(left.precision - left.scale, right.precision - right.scale)
        # Unlike in arithmetic, digits before the point have priority.
        over = max(0, whole + scale - MOST_DIGITS)
        return Kind("decimal", min(whole + scale, MOST_DIGITS), max(0, scale - over))
    if one.is_number and other.is_number:
        return DOUBLE
    raise NotTranslatedError(f"{one} beside {other}")

"""The types of decimal arithmetic in Spark, each as its digits and those behind the point.

Source: Spark's ``DecimalPrecision`` and ``DecimalType.adjustPrecisionScale``.
"""

from __future__ import annotations

from spark_jobs.definitions.column_types import MOST_DIGITS

# Minimum scale of a result that would need more than 38 digits.
LEAST_SCALE = 6

Size = tuple[int, int]


def limited(precision: int, scale: int) -> Size:
    """The type of a result that may need more than 38 digits.

    >>> limited(49, 6), limited(47, 12)
    ((38, 6), (38, 6))
    """
    if precision <= MOST_DIGITS:
        return precision, scale
    least = min(scale, LEAST_SCALE)
    return MOST_DIGITS, max(MOST_DIGITS - (precision - scale), least)


def total_size(kind: Size) -> Size:
    """The type of SUM."""
    return min(kind[0] + 10, MOST_DIGITS), kind[1]


def sum_size(one: Size, other: Size) -> Size:
    """The type of ``+`` and ``-``.

    >>> sum_size((1, 0), (15, 2))
    (16, 2)
    """
    scale = max(one[1], other[1])
    return limited(max(one[0] - one[1], other[0] - other[1]) + scale + 1, scale)


def product_size(one: Size, other: Size) -> Size:
    """The type of ``*``."""
    return limited(one[0] + other[0] + 1, one[1] + other[1])


def quotient_size(one: Size, other: Size) -> Size:
    """The type of ``/``."""
    scale = max(LEAST_SCALE, one[1] + other[0] + 1)
    return limited(one[0] - one[1] + other[1] + scale, scale)


def remainder_size(one: Size, other: Size) -> Size:
    """The type of ``%``."""
    scale = max(one[1], other[1])
    return limited(min(one[0] - one[1], other[0] - other[1]) + scale, scale)

"""Checks a few rows in this process, for expectations whose meaning needs no library.

Only definite answers are given. The gate itself, in ``gate``, asks Great Expectations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.details import result_of
from spark_jobs.quality.suite import DeclaredExpectation, read_suite, suite_name
from spark_jobs.quality.verdict import Verdict

# Patterns that mean the same in Java and Python.
_PATTERN: Final = re.compile(
    r"\^?(?:[A-Za-z0-9_:@/ -]|\[[A-Za-z0-9_:.@/ -]+\]|\{\d+(?:,\d*)?\}|\+)*\$?"
)
_Columns = Mapping[str, Sequence[Any]]


class NotCertainError(Exception):
    """An expectation that the gate must check.

    Attributes:
        type: its name in Great Expectations.
    """

    def __init__(self, declared: DeclaredExpectation) -> None:
        super().__init__(declared.type)
        self.type = declared.type


def audit_here(rows: pa.Table, suite: Mapping[str, Any] | None, *, table: str) -> Verdict:
    """The verdict on rows, if no critical expectation fails.

    Args:
        rows: the rows of the table.
        suite: the suite in Great Expectations' format; None if the table has none.
        table: the table's name in messages.

    Raises:
        NotCertainError: a critical expectation fails, or this process cannot check one.
        SuiteRefusedError: an entry has no type, or an unknown severity.
    """
    columns = rows.to_pydict()
    results = []
    for one in read_suite(suite or {}, table=table):
        holds = _holds(one, columns, rows.num_rows)
        if holds is None or (not holds and one.severity is Severity.CRITICAL):
            raise NotCertainError(one)
        results.append(result_of(one, success=holds, details=None))
    name = None if suite is None else suite_name(suite)
    return Verdict(table=table, suite=name, rows=rows.num_rows, results=tuple(results))


def _holds(declared: DeclaredExpectation, columns: _Columns, rows: int) -> bool | None:
    """Whether an expectation holds; None if that is not known here."""
    check = _CHECKS.get(declared.type)
    if check is None:
        return None
    try:
        known = set(declared.columns) <= columns.keys()
        return check(columns, rows, **declared.kwargs) if known else None
    except (TypeError, ValueError, ArithmeticError, LookupError, re.error):
        # Another argument, values that are not comparable, or a pattern that only Java reads: the
        # gate says what is wrong.
        return None


def _not_null(columns: _Columns, _: int, *, column: str) -> bool | None:
    return all(one is not None for one in columns[column])


def _unique(columns: _Columns, _: int, *, column: str) -> bool | None:
    return _distinct([(one,) for one in columns[column] if one is not None])


def _unique_together(columns: _Columns, _: int, *, column_list: Sequence[str]) -> bool | None:
    rows = list(zip(*(columns[name] for name in column_list), strict=True))
    # Rows with NULL are counted in another way.
    return _distinct(rows) if all(None not in row for row in rows) else None


def _distinct(rows: Sequence[tuple[Any, ...]]) -> bool | None:
    if any(isinstance(one, dict | list) for row in rows for one in row):
        return None
    # For Spark a NaN equals itself, as its text does, and a zero has no sign.
    plain = [[one or 0.0 if isinstance(one, float) else one for one in row] for row in rows]
    return len(set(map(repr, plain))) == len(rows)


def _between(
    columns: _Columns,
    _: int,
    *,
    column: str,
    min_value: float | None = None,
    max_value: float | None = None,
) -> bool | None:
    values = [one for one in columns[column] if one is not None]
    # A NaN is neither above nor below.
    if any(one != one for one in values):  # noqa: PLR0124
        return None
    return all(
        (min_value is None or min_value <= one) and (max_value is None or one <= max_value)
        for one in values
    )


def _greater(
    columns: _Columns,
    _: int,
    *,
    column_A: str,  # noqa: N803 - the library's name
    column_B: str,  # noqa: N803
    or_equal: bool = False,
) -> bool | None:
    pairs = list(zip(columns[column_A], columns[column_B], strict=True))
    if any(None in pair for pair in pairs):
        return None
    return all(one > other or (or_equal and one == other) for one, other in pairs)


def _in_set(columns: _Columns, _: int, *, column: str, value_set: Sequence[Any]) -> bool | None:
    values = [one for one in columns[column] if one is not None]
    if not all(isinstance(one, str) for one in (*values, *value_set)):
        return None
    return set(values) <= set(value_set)


def _length(columns: _Columns, _: int, *, column: str, value: int) -> bool | None:
    return all(len(one) == value for one in columns[column] if one is not None)


def _lengths_between(
    columns: _Columns,
    _: int,
    *,
    column: str,
    min_value: int | None = None,
    max_value: int | None = None,
) -> bool | None:
    lengths = [len(one) for one in columns[column] if one is not None]
    return all(
        (min_value is None or min_value <= one) and (max_value is None or one <= max_value)
        for one in lengths
    )


def _matches(columns: _Columns, _: int, *, column: str, regex: str) -> bool | None:
    if not _PATTERN.fullmatch(regex):
        return None
    return all(re.search(regex, one) for one in columns[column] if one is not None)


def _row_count(
    columns: _Columns, rows: int, *, min_value: int | None = None, max_value: int | None = None
) -> bool | None:
    del columns
    return (min_value is None or min_value <= rows) and (max_value is None or rows <= max_value)


_CHECKS: Final[Mapping[str, Callable[..., bool | None]]] = {
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_be_unique": _unique,
    "expect_compound_columns_to_be_unique": _unique_together,
    "expect_column_values_to_be_between": _between,
    "expect_column_pair_values_a_to_be_greater_than_b": _greater,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_value_lengths_to_be_between": _lengths_between,
    "expect_column_value_lengths_to_equal": _length,
    "expect_column_values_to_match_regex": _matches,
    "expect_table_row_count_to_be_between": _row_count,
}

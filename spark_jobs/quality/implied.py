"""Expectations that a view's declaration implies, in addition to those of its suite.

If the suite has an expectation of the same kind for the same columns, that one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final

from spark_jobs.definitions.batch_rules import LENGTHS_BETWEEN
from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.verdict import JsonObject

UNIQUE: Final = "expect_column_values_to_be_unique"
UNIQUE_TOGETHER: Final = "expect_compound_columns_to_be_unique"
NOT_NULL: Final = "expect_column_values_to_not_be_null"
ROW_COUNT: Final = "expect_table_row_count_to_be_between"

# Minimum history for the row count, and minimum rows: small counts vary widely.
FEWEST_PUBLICATIONS: Final = 5
FEWEST_ROWS: Final = 100
# Minimum share of the median of earlier publications.
LEAST_SHARE: Final = 0.5


def with_implied(
    suite: Mapping[str, Any] | None,
    *,
    view: str,
    grain: Sequence[str] = (),
    text_parts: Sequence[str] = (),
    earlier_rows: Sequence[int] = (),
) -> JsonObject | None:
    """A suite in Great Expectations' format, with the implied expectations appended.

    >>> with_implied(None, view="daily", grain=["day"])["expectations"][0]["type"]
    'expect_column_values_to_be_unique'

    Args:
        suite: the view's suite; None if it has none.
        view: name for a suite of implied expectations only.
        grain: declared unique key. Two rows with the same values are an error; a NULL may be
            intended, so it is only a warning.
        text_parts: partition columns of texts, where Delta stores an empty text as NULL.
        earlier_rows: row counts of earlier publications of the definition; () if they do not
            predict the next.

    Returns:
        None if there is nothing to check.
    """
    written = list((suite or {}).get("expectations") or ())
    implied = _implied(grain, text_parts, earlier_rows)
    found = [one for one in implied if not _is_written(one, written)]
    if not found:
        return None if suite is None else dict(suite)
    return {"name": view, **(suite or {}), "expectations": [*written, *found]}


def _implied(
    grain: Sequence[str], text_parts: Sequence[str], earlier_rows: Sequence[int]
) -> Iterator[JsonObject]:
    if len(grain) == 1:
        yield _expectation(UNIQUE, {"column": grain[0]}, "It is the declared grain.")
    elif grain:
        words = "Together they are the declared grain."
        yield _expectation(UNIQUE_TOGETHER, {"column_list": list(grain)}, words)
    for column in grain:
        words = "It is a part of the declared grain."
        yield _expectation(NOT_NULL, {"column": column}, words, severity=Severity.WARNING)
    for column in text_parts:
        words = "Delta stores an empty text of a partition as NULL."
        yield _expectation(LENGTHS_BETWEEN, {"column": column, "min_value": 1}, words)
    if len(earlier_rows) >= FEWEST_PUBLICATIONS:
        usual = median(earlier_rows)
        if usual >= FEWEST_ROWS:
            least = int(usual * LEAST_SHARE)
            words = f"Half of the rows that the last {len(earlier_rows)} publications had."
            yield _expectation(ROW_COUNT, {"min_value": least}, words, severity=Severity.WARNING)


def _expectation(
    kind: str, kwargs: JsonObject, words: str, *, severity: Severity = Severity.CRITICAL
) -> JsonObject:
    return {"type": kind, "kwargs": kwargs, "severity": str(severity), "meta": {"notes": words}}


def _is_written(implied: JsonObject, written: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the suite has an expectation of this kind for these columns."""
    return any(
        one.get("type") == implied["type"] and _columns(one) == _columns(implied) for one in written
    )


def _columns(expectation: Mapping[str, Any]) -> frozenset[str]:
    kwargs = expectation.get("kwargs") or {}
    named = kwargs.get("column_list") or [kwargs.get("column", "")]
    return frozenset(str(one).lower() for one in named)

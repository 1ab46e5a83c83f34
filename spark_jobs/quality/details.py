"""Converts results of Great Expectations to plain values and one line of text."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from spark_jobs.quality.suite import COLUMN_KWARGS, DeclaredExpectation
from spark_jobs.quality.verdict import ExpectationResult, JsonObject, JsonScalar

# Enough to recognise the problem; the ledger is not for data.
SAMPLES: Final = 5
SAMPLE_LENGTH: Final = 80
# Number of keys shown in a line.
KEYS_IN_A_LINE: Final = 3

# The expectation that runs a query, and counts rows instead of values.
ROWS_EXPECTATION: Final = "unexpected_rows_expectation"
_QUERY: Final = "unexpected_rows_query"
# What would end a line, hide in it, or be refused by PostgreSQL.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def result_of(
    declared: DeclaredExpectation,
    *,
    success: bool,
    details: JsonObject | None,
    grain: Sequence[str] = (),
    personal: Collection[str] = (),
) -> ExpectationResult:
    """The verdict's entry for one expectation.

    Args:
        declared: the expectation.
        success: whether it passed.
        details: details from Great Expectations; only for failed expectations.
        grain: columns that identify a row for users; empty if one contains personal data.
        personal: lower-case names of columns with personal data: their values are not stored.
    """
    found = details or {}
    hidden = bool(personal) and (
        # A query may read any column.
        declared.type == ROWS_EXPECTATION
        or any(one.lower() in personal for one in declared.columns)
    )
    observed, values = _observed(found.get("observed_value"))
    count = found.get("unexpected_count")
    if declared.type == ROWS_EXPECTATION and not success and isinstance(observed, int):
        count, observed = observed, None
    rows = _rows(found)
    # NULL samples say no more than their count.
    seen = [value for value in (*values, *_sample_values(found)) if value is not None]
    samples = () if hidden else tuple(_text(value) for value in seen[:SAMPLES])
    keys = tuple(_key(row, grain) for row in rows[:SAMPLES]) if grain else ()
    percent = found.get("unexpected_percent")
    result = ExpectationResult(
        position=declared.position,
        type=declared.type,
        kwargs=declared.kwargs,
        column=declared.column,
        severity=declared.severity,
        success=success,
        unexpected_count=None if count is None else int(count),
        unexpected_percent=None if percent is None else round(float(percent), 4),
        samples=samples,
        keys=tuple(dict.fromkeys(one for one in keys if one)),
        observed=None if hidden else observed,
        note=declared.note,
    )
    return result if success else _with_message(result, found, hidden=hidden)


def limits(result: ExpectationResult) -> str:
    """The limits of the rule, as written: ``min_value=0, max_value=100``."""
    shown = {
        name: value
        for name, value in result.kwargs.items()
        if name not in COLUMN_KWARGS and name != _QUERY
    }
    return ", ".join(f"{name}={_text(value)}" for name, value in shown.items())


def _with_message(
    result: ExpectationResult, found: JsonObject, *, hidden: bool
) -> ExpectationResult:
    about = f" of {result.column}" if result.column else ""
    allowed = f" ({text})" if (text := limits(result)) else ""
    parts = list(_findings(result, found, hidden=hidden))
    if result.note:
        parts.append(f"note: {result.note.rstrip('.')}")
    said = f": {'; '.join(parts)}" if parts else ""
    return replace(result, message=f"{result.type}{about}{allowed} failed{said}")


def _findings(result: ExpectationResult, found: JsonObject, *, hidden: bool) -> Iterator[str]:
    if result.unexpected_count is not None:
        total = found.get("element_count")
        noun = "rows" if result.type == ROWS_EXPECTATION else "values"
        of = f" of {total}" if total is not None else ""
        yield f"{result.unexpected_count}{of} {noun} do not fit"
    elif "observed_value" in found and not hidden:
        yield f"observed {'no value' if result.observed is None else result.observed}"
    if result.keys:
        more = ", …" if len(result.keys) > KEYS_IN_A_LINE else ""
        yield f"rows with {', '.join(result.keys[:KEYS_IN_A_LINE])}{more}"


def _rows(found: JsonObject) -> list[Mapping[str, Any]]:
    """Unexpected rows, as far as their columns are known."""
    rows = found.get("partial_unexpected_index_list")
    if rows is None:
        rows = (found.get("details") or {}).get("unexpected_rows")
    plain = [row.asDict() if hasattr(row, "asDict") else row for row in rows or ()]
    return [row for row in plain if isinstance(row, Mapping)]


def _key(row: Mapping[str, Any], grain: Sequence[str]) -> str:
    """A row's grain as text; empty if the query omitted one of its columns."""
    parts = [f"{name}={_text(row[name])}" for name in grain if name in row]
    text = " ".join(parts) if len(parts) == len(grain) else ""
    return f"({text})" if len(parts) > 1 and text else text


def _sample_values(found: JsonObject) -> Iterable[Any]:
    values = found.get("partial_unexpected_list")
    if values is None:
        values = (found.get("details") or {}).get("unexpected_rows")
    return values if isinstance(values, list) else ()


def _observed(value: Any) -> tuple[JsonScalar, Sequence[Any]]:
    """The observed value of an aggregate rule; listed values become samples."""
    if isinstance(value, list | tuple | set):
        return f"{len(value)} values", list(value)
    return _scalar(value), ()


def _text(value: Any) -> str:
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, Mapping):
        text = f"({', '.join(f'{key}={_text(part)}' for key, part in value.items())})"
    elif isinstance(value, list | tuple):
        text = f"({', '.join(_text(part) for part in value)})"
    else:
        text = "NULL" if value is None else _plain(str(value))
    return text if len(text) <= SAMPLE_LENGTH else text[: SAMPLE_LENGTH - 1] + "…"


def _scalar(value: Any) -> JsonScalar:
    """A value that JSON can store; PostgreSQL rejects NaN and infinities."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return _plain(value)
    if value is None or isinstance(value, int | float | bool):
        return value
    return _text(value)


def _plain(text: str) -> str:
    """Text on one line: control characters are written as in Python."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)

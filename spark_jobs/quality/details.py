"""Turns one of Great Expectations' results into the verdict's plain values and one line of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from spark_jobs.quality.suite import DeclaredExpectation
from spark_jobs.quality.verdict import ExpectationResult, JsonObject, JsonScalar

# Enough to recognise what is wrong; the ledger is no place for data.
SAMPLES: Final = 5
SAMPLE_LENGTH: Final = 80

# The expectation that is a query of its own, and counts rows instead of a column's values.
ROWS_EXPECTATION: Final = "unexpected_rows_expectation"


def result_of(
    declared: DeclaredExpectation, *, success: bool, details: JsonObject | None
) -> ExpectationResult:
    """The verdict's entry for one expectation; ``details`` are known for failed ones only."""
    found = details or {}
    observed = _scalar(found.get("observed_value"))
    count = found.get("unexpected_count")
    if declared.type == ROWS_EXPECTATION and not success and isinstance(observed, int):
        count, observed = observed, None
    # A list of nothing but NULLs tells no more than its count.
    seen = [value for value in _sample_values(found) if value is not None]
    samples = tuple(_text(value) for value in seen[:SAMPLES])
    percent = found.get("unexpected_percent")
    return ExpectationResult(
        position=declared.position,
        type=declared.type,
        kwargs=declared.kwargs,
        column=declared.column,
        severity=declared.severity,
        success=success,
        unexpected_count=None if count is None else int(count),
        unexpected_percent=None if percent is None else round(float(percent), 4),
        samples=samples,
        observed=observed,
        message="" if success else _message(declared, count, found, observed, samples),
    )


def _message(
    declared: DeclaredExpectation,
    count: int | None,
    found: JsonObject,
    observed: JsonScalar,
    samples: tuple[str, ...],
) -> str:
    about = f" of {declared.column}" if declared.column else ""
    parts = [f"{declared.type}{about} failed"]
    if count is not None:
        total = found.get("element_count")
        noun = "rows" if declared.type == ROWS_EXPECTATION else "values"
        of = f" of {total}" if total is not None else ""
        parts.append(f"{count}{of} {noun} do not fit")
    elif "observed_value" in found:
        parts.append(f"observed {'no value' if observed is None else observed}")
    if samples:
        parts.append(f"for instance {', '.join(samples[:3])}")
    return ": ".join(parts[:2]) + "".join(f", {part}" for part in parts[2:])


def _sample_values(found: JsonObject) -> Iterable[Any]:
    values = found.get("partial_unexpected_list")
    if values is None:
        values = (found.get("details") or {}).get("unexpected_rows")
    return values if isinstance(values, list) else ()


def _text(value: Any) -> str:
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, Mapping):
        text = f"({', '.join(f'{key}={_text(part)}' for key, part in value.items())})"
    elif isinstance(value, list | tuple):
        text = f"({', '.join(_text(part) for part in value)})"
    else:
        text = "NULL" if value is None else str(value)
    return text if len(text) <= SAMPLE_LENGTH else text[: SAMPLE_LENGTH - 1] + "…"


def _scalar(value: Any) -> JsonScalar:
    """A value that JSON can hold; PostgreSQL refuses NaN and infinities in it."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return _text(value)

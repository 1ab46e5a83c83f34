"""Renders a verdict: a table for the terminal, plain lines for task logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.quality.details import limits
from spark_jobs.quality.verdict import ExpectationResult, Outcome, Verdict
from spark_jobs.terminal.tables import FittedTable

OUTCOME_STYLES: Final = {Outcome.PASSED: "green", Outcome.WARNED: "yellow", Outcome.BLOCKED: "red"}
SEVERITY_STYLES: Final = {
    Severity.CRITICAL: "red",
    Severity.WARNING: "yellow",
    Severity.INFO: "cyan",
}


def verdict_table(verdict: Verdict, *, values: bool = False) -> Table:
    """The expectations, failed ones first.

    Args:
        verdict: the gate's verdict.
        values: whether to show unexpected values; not where many people read.
    """
    table = FittedTable(title=summary(verdict))
    for heading in ("expectation", "column", "severity", "result", "what was found"):
        table.add_column(heading, overflow="fold")
    for one in sorted(verdict.results, key=lambda result: (result.success, result.position)):
        style = "green" if one.success else SEVERITY_STYLES[one.severity]
        table.add_row(
            Text(one.type),
            Text(one.column or ""),
            Text(one.severity),
            Text("passed" if one.success else "failed", style=style),
            Text(finding(one, values=values)),
        )
    return table


def verdict_text(verdict: Verdict) -> str:
    """The summary, and one line per failed expectation."""
    lines = [summary(verdict)]
    lines += [f"  {one.severity}: {one.message}" for one in verdict.failed]
    return "\n".join(lines)


def summary(verdict: Verdict) -> str:
    """One line: the outcome, with its numbers."""
    if not verdict.expectations:
        return f"{verdict.table}: {verdict.outcome}, nothing to check"
    rows = "" if verdict.rows is None else f" over {verdict.rows} rows"
    note = "; row-level expectations prove nothing without rows" if verdict.rows == 0 else ""
    passed = verdict.expectations - verdict.failures
    return (
        f"{verdict.table}: {verdict.outcome}, {passed} of {verdict.expectations} expectations "
        f"passed{rows} ({verdict.seconds:.1f} s){note}"
    )


def finding(one: ExpectationResult, *, values: bool = False) -> str:
    """The finding as a cell: counts and keys, limits, the author's note."""
    return "" if one.success else "; ".join(_findings(one, values=values))


def _findings(one: ExpectationResult, *, values: bool) -> Iterator[str]:
    if one.unexpected_count is not None:
        percent = "" if one.unexpected_percent is None else f" ({one.unexpected_percent:g} %)"
        yield f"{one.unexpected_count} unexpected{percent}"
    else:
        yield "no value" if one.observed is None else f"observed {one.observed}"
    if values and one.samples:
        yield f"values {', '.join(one.samples)}"
    if one.keys:
        yield f"rows with {', '.join(one.keys)}"
    if allowed := limits(one):
        yield f"allowed {allowed}"
    if one.note:
        yield one.note

"""Audit: checks a staged result against the view's expectations and its declared columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.refresh.ledger import past_row_counts
from spark_jobs.gold.refresh.staging import staged_at, staged_here, staged_result, staged_rows
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.personal import personal_columns
from spark_jobs.planning.work import WorkItem
from spark_jobs.quality import gate
from spark_jobs.quality.column_types import types_as_declared
from spark_jobs.quality.here import NotCertainError, audit_here
from spark_jobs.quality.implied import with_implied
from spark_jobs.quality.verdict import Verdict
from spark_jobs.storage import log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def audit(context: GoldContext, work: WorkItem) -> Verdict:
    """The verdict on the staged table.

    Raises:
        SuiteRefusedError: an expectation would not be checked as written.
        GateCrashedError: the check of an expectation raised an error.
    """
    if context.in_process:
        return _judged_here(context, work)
    return judged(
        context,
        work.view,
        lambda: staged_rows(context, work),
        rows=staged_result(context, work).rows,
        location=staged_at(context, work),
    )


def judged(
    context: GoldContext,
    view: str,
    read: Callable[[], DataFrame],
    *,
    rows: int | None,
    location: str,
) -> Verdict:
    """The verdict on rows of a view.

    Args:
        context: settings, manifest and locations of the project.
        view: the view whose expectations apply.
        read: returns the rows, with the view's columns.
        rows: number of rows; None if the log has no counts.
        location: of a table with the same columns.

    Raises:
        SuiteRefusedError: an expectation would not be checked as written.
        GateCrashedError: the check of an expectation raised an error.
    """
    entry = context.entry(view)
    verdict = gate.audit(
        read,
        _suite_of(context, view),
        table=str(gold_table(view)),
        rows=rows,
        grain=entry.grain,
        personal=personal_columns(entry),
    )
    return _with_types(verdict, entry, location)


def _judged_here(context: GoldContext, work: WorkItem) -> Verdict:
    """The verdict on the staged table by this process.

    Raises:
        NotTranslatedError: only the gate can check an expectation, or say why it fails.
    """
    rows, suite = staged_here(context, work), _suite_of(context, work.view)
    try:
        verdict = audit_here(rows, suite, table=str(gold_table(work.view)))
    except NotCertainError as error:
        raise NotTranslatedError(f"the expectation {error.type}") from error
    return _with_types(verdict, context.entry(work.view), staged_at(context, work))


def _suite_of(context: GoldContext, view: str) -> dict[str, Any] | None:
    """The view's expectations, with the implied ones."""
    entry = context.entry(view)
    # A view over CURRENT_TIMESTAMP loses rows as time passes.
    earlier = () if entry.reads_clock else past_row_counts(context, view)
    return with_implied(
        entry.suite,
        view=view,
        grain=entry.grain,
        text_parts=entry.text_parts,
        earlier_rows=earlier,
    )


def _with_types(verdict: Verdict, entry: GoldEntry, location: str) -> Verdict:
    """The verdict, with a failure if the table has other types than those declared."""
    unlike = types_as_declared(
        {column.name: column.type for column in entry.columns},
        {column.name: column.type for column in log.schema(location)},
        position=len(verdict.results),
    )
    return verdict if unlike is None else replace(verdict, results=(*verdict.results, unlike))

"""Audit: checks a staged result against the view's expectations and its declared columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from spark_jobs.gold.context import GoldContext, gold_table
from spark_jobs.gold.refresh.ledger import past_row_counts
from spark_jobs.gold.refresh.staging import staged_at, staged_result, staged_rows
from spark_jobs.graph.personal import personal_columns
from spark_jobs.planning.work import WorkItem
from spark_jobs.quality import gate
from spark_jobs.quality.column_types import types_as_declared
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
        read: returns the rows.
        rows: number of rows; None if the log does not tell.
        location: of a table with the same columns.

    Raises:
        LakehouseError: any error of ``audit``.
    """
    entry = context.entry(view)
    # A view over CURRENT_TIMESTAMP loses rows as time passes.
    earlier = () if entry.reads_clock else past_row_counts(context, view)
    suite = with_implied(entry.suite, view=view, grain=entry.grain, earlier_rows=earlier)
    verdict = gate.audit(
        read,
        suite,
        table=str(gold_table(view)),
        rows=rows,
        grain=entry.grain,
        personal=personal_columns(entry),
    )
    unlike = types_as_declared(
        {column.name: column.type for column in entry.columns},
        {column.name: column.type for column in log.schema(location)},
        position=len(verdict.results),
    )
    return verdict if unlike is None else replace(verdict, results=(*verdict.results, unlike))

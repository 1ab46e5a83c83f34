"""Audit: judge a staged result by the view's expectations, and by what its header implies."""

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
    """The gate's word on the staged rows, which are the table as it would be.

    Raises:
        SuiteRefusedError: an expectation would not be checked as it is written.
        GateCrashedError: an expectation's check raised, so that nothing is known.
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
    """The gate's word on rows of a view.

    Args:
        context: of the project.
        view: whose expectations hold.
        read: gives the rows.
        rows: how many there are; None where the log does not say.
        location: of the table that has their columns.

    Raises:
        LakehouseError: any condition of ``audit``.
    """
    entry = context.entry(view)
    # Rows of a view over the clock leave by time alone.
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

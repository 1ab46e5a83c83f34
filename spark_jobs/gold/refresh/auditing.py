"""Audit: judge a staged result by the view's expectations, and by what its header implies."""

from __future__ import annotations

from dataclasses import replace

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


def audit(context: GoldContext, work: WorkItem) -> Verdict:
    """The gate's word on the staged rows, which are the table as it would be.

    Raises:
        SuiteRefusedError: an expectation would not be checked as it is written.
        GateCrashedError: an expectation's check raised, so that nothing is known.
    """
    entry = context.entry(work.view)
    # Rows of a view over the clock leave by time alone.
    earlier = () if entry.reads_clock else past_row_counts(context, work.view)
    suite = with_implied(entry.suite, view=work.view, grain=entry.grain, earlier_rows=earlier)
    verdict = gate.audit(
        lambda: staged_rows(context, work),
        suite,
        table=str(gold_table(work.view)),
        rows=staged_result(context, work).rows,
        grain=entry.grain,
        personal=personal_columns(entry),
    )
    unlike = types_as_declared(
        {column.name: column.type for column in entry.columns},
        {column.name: column.type for column in log.schema(staged_at(context, work))},
        position=len(verdict.results),
    )
    return verdict if unlike is None else replace(verdict, results=(*verdict.results, unlike))

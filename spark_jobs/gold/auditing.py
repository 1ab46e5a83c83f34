"""Audit: judge a staged result by the view's expectations."""

from __future__ import annotations

from spark_jobs.gold.context import GoldContext, gold_table
from spark_jobs.gold.staging import staged_result, staged_rows
from spark_jobs.quality import gate
from spark_jobs.quality.verdict import Verdict
from spark_jobs.state.attempts import RefreshAttempt


def audit(context: GoldContext, attempt: RefreshAttempt) -> Verdict:
    """The gate's word on the staged rows, which are the table as it would be.

    Raises:
        SuiteRefusedError: an expectation would not be checked as it is written.
        GateCrashedError: an expectation's check raised, so that nothing is known.
    """
    return gate.audit(
        staged_rows(context, attempt),
        context.entry(attempt.view).suite,
        table=str(gold_table(attempt.view)),
        rows=staged_result(context, attempt).rows,
    )

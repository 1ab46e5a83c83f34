"""The circuit breaker: a refresh that would read far more than is usual waits for a person.

What a person asked for passes: a first build, a forced refresh, and every replay, which is planned
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median_low

from spark_jobs.planning.decision import Decision, Full, Incremental, Reason, ReasonCode, Skip
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.sections import BreakerSettings

# Of fewer refreshes nobody can say what is usual.
FEWEST = 3
# The first three are what a person asked for; of the last, the view's own refreshes say that it
# takes less time than following the change.
ASKED_FOR = frozenset(
    {ReasonCode.FORCED, ReasonCode.REPLAYED, ReasonCode.BACKFILLED, ReasonCode.ROLLED_BACK}
)
_PASS = ASKED_FOR | {ReasonCode.FIRST_BUILD, ReasonCode.FULL_IS_FASTER}


def usual_rows(reads: Sequence[int]) -> int | None:
    """The rows that a view's refreshes usually read; None where there were too few."""
    return median_low(reads) if len(reads) >= FEWEST else None


def guarded(
    plan: RefreshPlan, *, usual: int | None, limits: BreakerSettings, allowed: str | None = None
) -> RefreshPlan:
    """The plan, or the decision to wait for a person instead.

    Args:
        plan: with its estimate.
        usual: rows that the view's refreshes usually read; None where nobody knows.
        limits: the settings.
        allowed: who lets a large refresh pass, and why; None: nobody.
    """
    rows = plan_reads(plan)
    if plan.skips or plan.reason.code in _PASS or rows is None or usual is None:
        return plan
    if rows <= max(limits.rows, limits.times * usual):
        return plan
    size = f"it reads {rows:,} rows where {usual:,} are usual"
    if allowed is not None:
        text = f"{plan.reason.text}; {size}; {allowed}"
        return replace(plan, decision=_for(plan.decision, Reason(plan.reason.code, text)))
    text = (
        f"waits for a person, {size} ({plan.line}); "
        f"tidemark refresh {plan.view} --allow-large REASON lets it pass once"
    )
    return replace(plan, decision=Skip(Reason(ReasonCode.WAITS_FOR_PERSON, text)))


def plan_reads(plan: RefreshPlan) -> int | None:
    """The rows that count against the limits: changed ones, or all; None where logs do not say."""
    if plan.estimate is None:
        return None
    follows = isinstance(plan.decision, Incremental)
    return plan.estimate.changed if follows else plan.estimate.rows


def _for(decision: Decision, reason: Reason) -> Decision:
    match decision:
        case Full() | Incremental():
            return replace(decision, reason=reason)
        case _:
            return decision

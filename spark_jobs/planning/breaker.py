"""The circuit breaker: some refreshes wait for a person's approval.

These are refreshes that would read far more rows than usual, and those whose inputs have many new
records in quarantine, which points to a broken producer. Refreshes that a person asked for pass: a
first build, a forced refresh, and every replay, which is planned elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from spark_jobs.planning.decision import Decision, Full, Incremental, Reason, ReasonCode, Skip
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.sections import BreakerSettings

# With fewer refreshes there is no usual number of rows.
FEWEST = 3
# Refreshes that a person asked for.
ASKED_FOR = frozenset(
    {
        ReasonCode.FORCED,
        ReasonCode.REPLAYED,
        ReasonCode.BACKFILLED,
        ReasonCode.ROLLED_BACK,
        ReasonCode.PROMOTED,
    }
)
_PASS = ASKED_FOR | {ReasonCode.FIRST_BUILD}
# Full refreshes that are faster than incremental ones, as measured or expected.
_QUICK = frozenset({ReasonCode.FULL_IS_FASTER, ReasonCode.FULL_IS_TRIED})


@dataclass(frozen=True)
class Arrivals:
    """New records of a silver table since a view was published, and how many were quarantined."""

    table: str
    records: int
    quarantined: int

    def __str__(self) -> str:
        return f"{self.quarantined:,} of {self.records:,} new records of {self.table}"


def usual_rows(reads: Sequence[int]) -> int | None:
    """The rows that a view's refreshes usually read; None if there were too few refreshes."""
    return median_low(reads) if len(reads) >= FEWEST else None


def quarantines_much(quarantined: int, records: int, limits: BreakerSettings) -> bool:
    """Whether so many quarantined records are more than the usual few.

    >>> limits = BreakerSettings(quarantined_rows=100, quarantined_share=0.05)
    >>> [quarantines_much(*one, limits) for one in [(101, 2000), (101, 2020), (100, 100)]]
    [True, False, False]
    """
    return quarantined > max(limits.quarantined_rows, limits.quarantined_share * records)


def guarded(
    plan: RefreshPlan,
    *,
    usual: int | None,
    limits: BreakerSettings,
    arrivals: Sequence[Arrivals] = (),
    let_pass: str | None = None,
) -> RefreshPlan:
    """The plan, or a plan that waits for a person.

    Args:
        plan: with its estimate.
        usual: rows that the view's refreshes usually read; None if unknown.
        limits: the settings.
        arrivals: new records of the silver tables that the view reads.
        let_pass: who approves the refresh, and why; None: nobody has.
    """
    if plan.skips or plan.reason.code in _PASS:
        return plan
    why = " and ".join(_concerns(plan, usual=usual, limits=limits, arrivals=arrivals))
    if not why:
        return plan
    if let_pass is not None:
        text = f"{plan.reason.text}; {why}; {let_pass}"
        return replace(plan, decision=_for(plan.decision, Reason(plan.reason.code, text)))
    text = (
        f"waits for a person, {why} ({plan.line}); "
        f"tidemark refresh {plan.view} --let-pass REASON lets it pass once"
    )
    return replace(plan, decision=Skip(Reason(ReasonCode.WAITS_FOR_PERSON, text)))


def _concerns(
    plan: RefreshPlan, *, usual: int | None, limits: BreakerSettings, arrivals: Sequence[Arrivals]
) -> Iterator[str]:
    rows = None if plan.reason.code in _QUICK else plan_reads(plan)
    if rows is not None and usual is not None and rows > max(limits.rows, limits.times * usual):
        yield f"it reads {rows:,} rows where {usual:,} are usual"
    for one in arrivals:
        if quarantines_much(one.quarantined, one.records, limits):
            yield f"{one} are in quarantine"


def plan_reads(plan: RefreshPlan) -> int | None:
    """The rows that count against the limits: changed rows, or all; None if unknown."""
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

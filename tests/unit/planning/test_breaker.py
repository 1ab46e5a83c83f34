"""Which refreshes wait for a person, from their plans and what is usual."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_jobs.planning.breaker import Arrivals, guarded, usual_rows
from spark_jobs.planning.decision import Full, Incremental, Reason, ReasonCode, Skip
from spark_jobs.planning.plan import Estimate, RefreshPlan, plan_refresh
from spark_jobs.sections import BreakerSettings
from tests.unit.planning.test_plan import ENTRY, NOON, STILL

LIMITS = BreakerSettings(rows=1000, times=10)
PLAN = plan_refresh(ENTRY, STILL, tick="t", clock=NOON)
CHANGED = Reason(ReasonCode.DEFINITION_CHANGED, "definition changed")
FULL, FOLLOWED = Full(CHANGED), Incremental(replace(CHANGED, text="rows moved"), "aggregate_state")


def plan(
    decision: Full | Incremental | Skip = FULL,
    *,
    rows: int | None = 50_000,
    changed: int | None = 7,
) -> RefreshPlan:
    return replace(PLAN, decision=decision, estimate=Estimate(rows, 1, changed))


def waits(one: RefreshPlan, usual: int | None = 100, limits: BreakerSettings = LIMITS) -> bool:
    found = guarded(one, usual=usual, limits=limits)
    assert found == one or found.reason.code is ReasonCode.WAITS_FOR_PERSON
    return found != one


def test_a_full_refresh_far_above_what_is_usual_waits_and_says_why() -> None:
    found = guarded(plan(), usual=100, limits=LIMITS)
    assert found.line == (
        "skip: waits for a person, it reads 50,000 rows where 100 are usual (full: definition "
        "changed); tidemark refresh daily --let-pass REASON lets it pass once"
    )
    assert found.estimate == plan().estimate, "the ledger keeps how large it would have been"


@pytest.mark.parametrize(
    ("rows", "usual", "wait"),
    [
        (1000, 1, False),
        (1001, 1, True),
        (50_000, 5000, False),
        (50_001, 5000, True),
        (None, 1, False),
        (50_000, None, False),
    ],
)
def test_both_limits_must_be_passed(rows: int | None, usual: int | None, *, wait: bool) -> None:
    assert waits(plan(rows=rows), usual) is wait


def test_of_a_followed_change_only_the_changed_rows_count() -> None:
    assert not waits(plan(FOLLOWED))
    assert waits(plan(FOLLOWED, changed=2000))
    assert not waits(plan(FOLLOWED, changed=None))


@pytest.mark.parametrize(
    "code", ["FIRST_BUILD", "FORCED", "FULL_IS_FASTER", "FULL_IS_TRIED", "REPLAYED"]
)
def test_requested_or_quick_refreshes_never_wait(code: str) -> None:
    assert not waits(plan(Full(Reason(ReasonCode(code), "because"))))


def test_a_skipped_refresh_never_waits() -> None:
    assert not waits(plan(Skip(Reason(ReasonCode.VIEW_PINNED, "held"))))


def test_an_approved_refresh_records_who_and_why() -> None:
    found = guarded(plan(), usual=100, limits=LIMITS, let_pass="let pass by ann: new column")
    assert found.line == (
        "full: definition changed; it reads 50,000 rows where 100 are usual; "
        "let pass by ann: new column"
    )
    followed = guarded(plan(FOLLOWED, changed=2000), usual=1, limits=LIMITS, let_pass="ann")
    assert isinstance(followed.decision, Incremental)
    assert followed.decision.rule == "aggregate_state"
    small = guarded(plan(rows=10), usual=100, limits=LIMITS, let_pass="ann")
    assert small == plan(rows=10), "nothing had to be let pass"


@pytest.mark.parametrize(
    ("reads", "usual"), [([], None), ([5, 9], None), ([5, 900, 7], 7), ([1, 2, 3, 4], 2)]
)
def test_the_usual_size_is_the_median_of_at_least_three_refreshes(
    reads: list[int], usual: int | None
) -> None:
    assert usual_rows(reads) == usual


ORDERS = Arrivals("silver.orders", records=2000, quarantined=101)
FEW = Arrivals("silver.users", records=20, quarantined=20)


def test_a_refresh_waits_where_much_of_what_came_is_in_quarantine() -> None:
    found = guarded(plan(FOLLOWED), usual=None, limits=LIMITS, arrivals=(FEW, ORDERS))
    assert found.line == (
        "skip: waits for a person, 101 of 2,000 new records of silver.orders are in quarantine "
        "(incremental: rows moved); tidemark refresh daily --let-pass REASON lets it pass once"
    )
    assert guarded(plan(FOLLOWED), usual=None, limits=LIMITS, arrivals=(FEW,)) == plan(FOLLOWED)
    large = guarded(plan(), usual=100, limits=LIMITS, arrivals=(ORDERS,))
    assert "where 100 are usual and 101 of 2,000 new records" in large.line


@pytest.mark.parametrize("code", ["FIRST_BUILD", "FORCED", "REPLAYED"])
def test_a_requested_refresh_passes_despite_many_quarantined_records(code: str) -> None:
    asked = plan(Full(Reason(ReasonCode(code), "because")))
    assert guarded(asked, usual=None, limits=LIMITS, arrivals=(ORDERS,)) == asked


def test_that_a_full_refresh_is_quicker_excuses_no_quarantine() -> None:
    quicker = plan(Full(Reason(ReasonCode.FULL_IS_FASTER, "because")))
    found = guarded(quicker, usual=100, limits=LIMITS, arrivals=(ORDERS,))
    assert found.reason.code is ReasonCode.WAITS_FOR_PERSON
    assert "usual" not in found.line

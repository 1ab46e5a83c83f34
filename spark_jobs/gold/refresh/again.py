"""Steps that plan a refresh again if the view was published or changed since its plan.

A newer publication may show older input, for instance that of a backfill, so an attempt that it
overtook is not the end. Each step may be repeated with the attempt that it was first called with.
"""

from __future__ import annotations

from contextlib import suppress

from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.refresh.observe import catch_up
from spark_jobs.gold.refresh.publishing import Published
from spark_jobs.gold.refresh.steps import ROUNDS, Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.errors import LeaseTakenError
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now

_COMPUTED = tuple(one for one in AttemptStatus if one is not AttemptStatus.SKIPPED)


def newest_attempt(store: ControlStore, attempt_id: str) -> RefreshAttempt:
    """The attempt, or the last one that was planned in its place after it was superseded.

    Raises:
        AttemptNotFoundError: there is no such attempt.
    """
    attempt = store.attempt(attempt_id)
    if attempt.status is not AttemptStatus.SUPERSEDED:
        return attempt
    later = store.attempts(attempt.view, tick=attempt.tick, statuses=_COMPUTED, limit=1)
    return later[0] if later else attempt


def check_followed(context: GoldContext, plan: RefreshPlan) -> None:
    """A plan may stand back before a recomputation only if the schedule refreshes the view later.

    Raises:
        LeaseTakenError: the view is refreshed on demand only: this refresh must be repeated.
    """
    if plan.reason.code is not ReasonCode.REPLAY_PUBLISHES or context.entry(plan.view).scheduled:
        return
    lease = context.store.lease_holder(catch_up(plan.view))
    # It may have ended since the plan.
    holder, until = (lease.owner, lease.expires_at) if lease else ("a recomputation", utc_now())
    raise LeaseTakenError(str(gold_table(plan.view)), holder=holder, expires_at=until)


def stage_on_newest(refresher: Refresher, attempt_id: str) -> str | None:
    """Stage on top of the newest publication, by the newest definition.

    Returns:
        the attempt that was staged, perhaps a new one; None: there is nothing left to refresh.

    Raises:
        BaseMovedError: other refreshes published first in every round.
        LakehouseError: any other error of ``Refresher.stage``.
    """
    attempt = refresher.context.store.attempt(attempt_id)
    for _ in range(ROUNDS - 1):
        if attempt.status is not AttemptStatus.SUPERSEDED:
            with suppress(BaseMovedError):
                refresher.stage(attempt.attempt_id)
                return attempt.attempt_id
            refresher.supersede(attempt.attempt_id)
        plan = refresher.plan(
            attempt.view,
            tick=attempt.tick,
            force=_forced(attempt),
            let_pass=_passed(attempt_id),
            asked_by=attempt.asked_by,
        )
        check_followed(refresher.context, plan)
        if plan.skips:
            return None
        attempt = refresher.context.store.attempt(plan.attempt_id)
    refresher.stage(attempt.attempt_id)
    return attempt.attempt_id


def audit_on_newest(refresher: Refresher, attempt_id: str) -> str | None:
    """Audit; if another publication came first, refresh again on top of it.

    Returns:
        the attempt that was audited, perhaps a new one; None: there is nothing left to refresh.

    Raises:
        BaseMovedError: other refreshes published first in every round.
        GateBlockedError: a critical expectation failed; the published content stays.
        LakehouseError: any other error of the steps.
    """
    for _ in range(ROUNDS - 1):
        with suppress(BaseMovedError):
            refresher.audit(attempt_id)
            return attempt_id
        newest = stage_on_newest(refresher, refresher.supersede(attempt_id).attempt_id)
        if newest is None:
            return None
        attempt_id = newest
    refresher.audit(attempt_id)
    return attempt_id


def publish_on_newest(refresher: Refresher, attempt_id: str) -> Published:
    """Publish; if another publication came first, refresh again on top of it.

    Raises:
        BaseMovedError: other refreshes published first in every round.
        GateBlockedError: a critical expectation failed on the newer content.
        LakehouseError: any other error of the steps.
    """
    with suppress(BaseMovedError):
        published = refresher.publish(attempt_id)
        if not published.superseded:
            return published
    attempt = refresher.supersede(attempt_id)
    outcome = refresher.run(
        attempt.view,
        tick=attempt.tick,
        force=_forced(attempt),
        let_pass=_passed(attempt_id),
        asked_by=attempt.asked_by,
    )
    check_followed(refresher.context, outcome.plan)
    # A process that was killed may have published it already.
    newest = newest_attempt(refresher.context.store, attempt_id)
    changed = bool((newest.actual or {}).get("changed"))
    return Published(attempt.view, newest.attempt_id, newest.published_version, changed)


def _forced(attempt: RefreshAttempt) -> bool:
    return attempt.reason_code == ReasonCode.FORCED


def _passed(attempt_id: str) -> str:
    return f"attempt {attempt_id} was let pass"

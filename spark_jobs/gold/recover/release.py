"""Release: a person publishes one result that the gate blocks, once, with a recorded reason.

The staged result is published unchanged, with the input versions that it was computed from. The
expectations stay: the next refresh is audited as usual.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import NothingToReleaseError, ReleaseRefusedError
from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.observe import parked
from spark_jobs.gold.refresh.publishing import Published
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.gold.refresh.waiting import (
    LOOKING_BACK,
    blocked,
    unpublishable,
    waiting_results,
)
from spark_jobs.planning.request import Why
from spark_jobs.planning.vector import VersionVector
from spark_jobs.quality.verdict import Outcome, Verdict
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.types import utc_now

FAILPOINTS = ("gold.release.recorded",)
# All statuses of attempts that computed a result.
_COMPUTED: Final = tuple(one for one in AttemptStatus if one is not AttemptStatus.SKIPPED)
_LOOKED_AT: Final = 50


def blocked_attempt(
    refresher: Refresher, view: str, *, attempt_id: str | None = None
) -> RefreshAttempt:
    """The result that a release would publish, or that an interrupted one has published.

    Args:
        refresher: refreshes the project's views.
        view: the gold view.
        attempt_id: the result that the person has inspected; None: the newest one that waits.

    Raises:
        NothingToReleaseError: the newest refresh was published, or there was none.
        ReleaseRefusedError: the result was not audited, or can no longer be published.
        ViewUnknownError: the project has no such view.
    """
    context = refresher.context
    context.entry(view)
    if (reason := parked(context, view)) is not None:
        raise ReleaseRefusedError(view, reason.text)
    settled = ledger.settle(context, view)
    if done := _released(context, view, settled if attempt_id is None else {attempt_id}):
        return done
    waiting = waiting_results(context, view)
    if attempt_id is None:
        attempt = waiting[0] if waiting else None
    else:
        attempt = next((one for one in waiting if one.attempt_id == attempt_id), None)
    if attempt is not None:
        if (problem := unpublishable(context, attempt)) is not None:
            raise ReleaseRefusedError(view, problem, newer=_newer(waiting, attempt))
        return attempt
    if attempt_id is not None:
        raise ReleaseRefusedError(
            view, _since(context, view, attempt_id), newer=_newer(waiting, None)
        )
    raise _nothing_waits(context, view)


def newer_input(refresher: Refresher, attempt: RefreshAttempt) -> VersionVector:
    """The inputs that have changed since a result was computed, at their newest versions."""
    newest = refresher.explain(attempt.view).vector
    used = attempt.vector or {}
    return VersionVector(
        {
            table: version
            for table, version in newest
            if used.get(str(table), {}).get("version") != version.version
        }
    )


def release_blocked(
    refresher: Refresher,
    view: str,
    *,
    who: str,
    why: Why,
    attempt_id: str | None = None,
    approved_by: str | None = None,
) -> Published:
    """Publish a blocked result, and record who released it, why, and which rules had failed.

    Args:
        refresher: refreshes the project's views.
        view: the gold view.
        who: the person who releases it.
        why: the reason and the ticket.
        attempt_id: the result that the person has inspected; no other is published. None: the
            newest one that waits.
        approved_by: the person who approved, if approval was required.

    Raises:
        BaseMovedError: the change was computed for another publication than the newest.
        LeaseTakenError: another writer holds the table's lease.
        NothingToReleaseError: the newest refresh was published, or there was none.
        ReleaseRefusedError: there is no audited result, or it can no longer be published.
        ViewUnknownError: the project has no such view.
    """
    attempt = blocked_attempt(refresher, view, attempt_id=attempt_id)
    if attempt.status is AttemptStatus.PUBLISHED:
        return Published(view, attempt.attempt_id, attempt.published_version, changed=True)
    if attempt.status is AttemptStatus.BLOCKED:
        _record(refresher, attempt, who=who, why=why, approved_by=approved_by)
    failpoint("gold.release.recorded")
    published = refresher.publish(attempt.attempt_id)
    if published.superseded:
        raise ReleaseRefusedError(view, "a newer result was published meanwhile")
    return published


def _nothing_waits(context: GoldContext, view: str) -> NothingToReleaseError | ReleaseRefusedError:
    """The error that says why no result waits."""
    found = context.store.attempts(view, statuses=_COMPUTED, limit=_LOOKED_AT)
    newest = next((one for one in found if one.reason_code not in LOOKING_BACK), None)
    if newest is None or newest.status in {AttemptStatus.PUBLISHED, AttemptStatus.SUPERSEDED}:
        return NothingToReleaseError(view)
    if blocked(newest):
        return ReleaseRefusedError(view, "a newer result was published meanwhile")
    why = (newest.error or f"it is {newest.status}").splitlines()[0]
    return ReleaseRefusedError(view, f"the gate did not check its newest refresh: {why}")


def _released(context: GoldContext, view: str, attempts: Collection[str]) -> RefreshAttempt | None:
    """The newest publication, if it is one of these attempts and a person released it."""
    newest = next(
        iter(context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=1)), None
    )
    return newest if newest and newest.attempt_id in attempts and blocked(newest) else None


def _since(context: GoldContext, view: str, attempt_id: str) -> str:
    """Why an attempt no longer waits."""
    published = context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=1)
    if published and published[0].attempt_id != attempt_id:
        one = published[0]
        return f"a newer result was published meanwhile, as version {one.published_version}"
    return f"attempt {attempt_id} does not wait"


def _newer(waiting: list[RefreshAttempt], than: RefreshAttempt | None) -> str | None:
    """The newest waiting result, if it is another one."""
    return waiting[0].attempt_id if waiting and waiting[0] is not than else None


def _record(
    refresher: Refresher,
    attempt: RefreshAttempt,
    *,
    who: str,
    why: Why,
    approved_by: str | None,
) -> None:
    verdict = dict(attempt.verdict or {})
    blocking = Verdict.from_dict(verdict).blocking
    verdict |= {
        "outcome": Outcome.RELEASED.value,
        "released_by": who,
        "approved_by": approved_by,
        "release_reason": why.reason,
        "release_ticket": why.ticket,
        "released_at": utc_now().isoformat(),
        "released_rules": ", ".join(one.name for one in blocking),
    }
    refresher.context.store.update_attempt(
        attempt.attempt_id, status=AttemptStatus.AUDITED, verdict=verdict, error=None
    )

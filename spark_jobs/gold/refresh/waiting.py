"""Results that the gate blocks, and that a person may let through.

A decision binds to what was looked at: a result waits until a person decides, until something is
published, or until a newer result passes the gate. A newer one that fails it too, and that nobody
asked for, does not take its place.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.refresh.staging import staged_at
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.quality.verdict import Outcome
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.storage import log

# What computes published versions again; it is resumed or rejected as a replay is.
LOOKING_BACK: Final = frozenset(
    {
        ReasonCode.REPLAYED,
        ReasonCode.BACKFILLED,
        ReasonCode.ROLLED_BACK,
        ReasonCode.PROMOTED,
    }
)
# Held, or let through by a release that was interrupted.
_WAITING: Final = (AttemptStatus.BLOCKED, AttemptStatus.AUDITED, AttemptStatus.FAILED)
_LOOKED_AT: Final = 50


def waiting_results(context: GoldContext, view: str) -> list[RefreshAttempt]:
    """The results that wait for a person, the newest first; what was published ends the wait."""
    published = context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=1)
    since = max((_place(one) for one in published), default=(0, 0))
    found = context.store.attempts(view, statuses=_WAITING, limit=_LOOKED_AT)
    return [
        one
        for one in found
        if one.reason_code not in LOOKING_BACK and blocked(one) and _place(one) > since
    ]


def blocked(attempt: RefreshAttempt) -> bool:
    """Whether the gate stopped it, also where a person has let it through since."""
    released = (attempt.verdict or {}).get("outcome") == Outcome.RELEASED
    return attempt.status is AttemptStatus.BLOCKED or released


def unpublishable(context: GoldContext, attempt: RefreshAttempt) -> str | None:
    """Why a result that waits cannot be published; None where it can."""
    if attempt.fingerprint != context.entry(attempt.view).fingerprint:
        return "its definition changed since the result was computed"
    if log.table_version(staged_at(context, attempt)) is None:
        return "the result was removed"
    return None


def keeps_waiting(context: GoldContext, attempt: RefreshAttempt) -> RefreshAttempt | None:
    """The result whose place an attempt does not take, though the gate stops it too; or None."""
    if attempt.asked_by is not None or attempt.reason_code in LOOKING_BACK:
        return None
    others = (
        one
        for one in waiting_results(context, attempt.view)
        if one.attempt_id != attempt.attempt_id and unpublishable(context, one) is None
    )
    return next(others, None)


def _place(attempt: RefreshAttempt) -> tuple[int, int]:
    return attempt.epoch, attempt.sequence or 0

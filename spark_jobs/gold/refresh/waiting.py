"""Blocked results that a person may release.

A decision applies to the result that the person has inspected. A result waits until a person
decides, until something is published, or until a newer result passes the gate. A newer result that
is blocked too does not replace it, unless a person asked for that refresh.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.refresh.staging import staged_at
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.quality.verdict import Outcome
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.storage import log

# Recomputations of published versions; they are resumed or rejected like a replay.
LOOKING_BACK: Final = frozenset(
    {
        ReasonCode.REPLAYED,
        ReasonCode.BACKFILLED,
        ReasonCode.ROLLED_BACK,
        ReasonCode.PROMOTED,
    }
)
# Blocked, or released by a command that was interrupted.
_WAITING: Final = (AttemptStatus.BLOCKED, AttemptStatus.AUDITED, AttemptStatus.FAILED)
_LOOKED_AT: Final = 50


def waiting_results(context: GoldContext, view: str) -> list[RefreshAttempt]:
    """The blocked results that wait for a person, newest first; a publication ends the wait."""
    published = context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=1)
    since = max((one.place for one in published), default=(0, 0))
    found = context.store.attempts(view, statuses=_WAITING, limit=_LOOKED_AT)
    return [
        one
        for one in found
        if one.reason_code not in LOOKING_BACK and blocked(one) and one.place > since
    ]


def blocked(attempt: RefreshAttempt) -> bool:
    """Whether the gate blocked it, even if a person has released it since."""
    released = (attempt.verdict or {}).get("outcome") == Outcome.RELEASED
    return attempt.status is AttemptStatus.BLOCKED or released


def unpublishable(context: GoldContext, attempt: RefreshAttempt) -> str | None:
    """Why a waiting result can no longer be published; None if it can."""
    if attempt.fingerprint != context.entry(attempt.view).fingerprint:
        return "its definition changed since the result was computed"
    if log.table_version(staged_at(context, attempt)) is None:
        return "the result was removed"
    return None


def keeps_waiting(context: GoldContext, attempt: RefreshAttempt) -> RefreshAttempt | None:
    """The waiting result that a newly blocked attempt does not replace, or None."""
    if attempt.asked_by is not None or attempt.reason_code in LOOKING_BACK:
        return None
    others = (
        one
        for one in waiting_results(context, attempt.view)
        if one.attempt_id != attempt.attempt_id and unpublishable(context, one) is None
    )
    return next(others, None)

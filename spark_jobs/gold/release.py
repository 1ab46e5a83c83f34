"""Release: a person lets one result through that the gate holds, once, with a reason that is kept.

What was staged and judged is published as it is, from the versions of the inputs that it was
computed from. The rules stay: the next refresh is judged by them again.
"""

from __future__ import annotations

from typing import Final

from spark_jobs.gold import ledger
from spark_jobs.gold.errors import NotHeldError, ReleaseRefusedError
from spark_jobs.gold.observe import parked
from spark_jobs.gold.publishing import Published
from spark_jobs.gold.refresh import Refresher
from spark_jobs.gold.staging import staged_at
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.request import Why
from spark_jobs.quality.verdict import Outcome, Verdict
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log

FAILPOINTS = ("gold.release.recorded",)
# Those that computed something; the replays among them are resumed or rejected as replays.
_COMPUTED: Final = tuple(one for one in AttemptStatus if one is not AttemptStatus.SKIPPED)
_OTHERS: Final = frozenset({ReasonCode.REPLAYED, ReasonCode.BACKFILLED, ReasonCode.ROLLED_BACK})
_LOOKED_AT: Final = 50


def held_attempt(refresher: Refresher, view: str) -> RefreshAttempt:
    """The result that a release would publish: that of the newest refresh, where the gate holds it.

    Raises:
        NotHeldError: the newest refresh was published, or there was none.
        ReleaseRefusedError: it was not judged, or what it staged can be published no more.
        ViewUnknownError: the project has no such view.
    """
    context = refresher.context
    entry = context.entry(view)
    if (reason := parked(context, view)) is not None:
        raise ReleaseRefusedError(view, reason.text)
    ledger.settle(context, view)
    found = context.store.attempts(view, statuses=_COMPUTED, limit=_LOOKED_AT)
    attempt = next((one for one in found if one.reason_code not in _OTHERS), None)
    if attempt is None or attempt.status in {AttemptStatus.PUBLISHED, AttemptStatus.SUPERSEDED}:
        raise NotHeldError(view)
    # One whose publication was interrupted is taken up again.
    released = (attempt.verdict or {}).get("outcome") == Outcome.RELEASED
    if attempt.status is not AttemptStatus.HELD and not released:
        why = (attempt.error or f"it is {attempt.status}").splitlines()[0]
        raise ReleaseRefusedError(view, f"the gate did not judge its newest refresh: {why}")
    if attempt.fingerprint != entry.fingerprint:
        raise ReleaseRefusedError(view, "its definition changed since the result was computed")
    if log.table_version(staged_at(context, attempt)) is None:
        raise ReleaseRefusedError(view, "the result that was held is kept no longer")
    return attempt


def release_held(
    refresher: Refresher, view: str, *, who: str, why: Why, attempt_id: str | None = None
) -> Published:
    """Publish what the gate holds, and record who let it through, why, and past which rules.

    Args:
        refresher: the refreshes of the project.
        view: the gold view.
        who: lets it through.
        why: the reason and the ticket.
        attempt_id: the result that somebody looked at; any other is refused. None: whichever
            is held.

    Raises:
        BaseMovedError: the change was computed for other content than is published now.
        LeaseTakenError: another writer keeps the table.
        NotHeldError: the newest refresh was published, or there was none.
        ReleaseRefusedError: there is no judged result, or a newer one was published.
        ViewUnknownError: the project has no such view.
    """
    attempt = held_attempt(refresher, view)
    if attempt_id not in {None, attempt.attempt_id}:
        raise ReleaseRefusedError(view, "a newer one is held than the one that was looked at")
    if attempt.status is AttemptStatus.HELD:
        _record(refresher, attempt, who=who, why=why)
    failpoint("gold.release.recorded")
    published = refresher.publish(attempt.attempt_id)
    if published.superseded:
        raise ReleaseRefusedError(view, "a newer result was published meanwhile")
    return published


def _record(refresher: Refresher, attempt: RefreshAttempt, *, who: str, why: Why) -> None:
    verdict = dict(attempt.verdict or {})
    holding = Verdict.from_dict(verdict).holding
    verdict |= {
        "outcome": Outcome.RELEASED.value,
        "released_by": who,
        "release_reason": why.reason,
        "release_ticket": why.ticket,
        "released_at": utc_now().isoformat(),
        "released_rules": ", ".join(one.name for one in holding),
    }
    refresher.context.store.update_attempt(
        attempt.attempt_id, status=AttemptStatus.AUDITED, verdict=verdict, error=None
    )

"""The status of a gold view: what is published, and how far it is behind its inputs.

Reads Delta logs and the ledger; no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.publications import Publication, latest_publication, rewritten
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.storage import log
from spark_jobs.storage.history import first_change

# Enough to find the newest finished attempt, and the newest one with a verdict.
_ATTEMPTS_LOOKED_AT = 50


class Freshness(StrEnum):
    """How a published view compares with its inputs."""

    # Contains every change of the inputs.
    CURRENT = "current"
    # Lacks a change that is younger than the declared freshness.
    BEHIND = "behind"
    # Lacks a change that is older than the declared freshness.
    LATE = "late"
    UNPUBLISHED = "unpublished"


@dataclass(frozen=True, kw_only=True)
class ViewStatus:
    """The status of a view.

    Attributes:
        policy: its refresh policy.
        behind: age of the oldest change that it lacks; None if nothing is published.
        target: the declared freshness.
        last: the newest attempt.
        verdict: the newest verdict, as stored in the ledger.
        blocked: whether the gate blocked the newest finished attempt.
        waits: whether the newest refresh waits for a person's approval, because it is so large.
        pinned: set while a rollback pins the view.
    """

    view: str
    policy: RefreshPolicy
    published_version: int | None
    published_at: datetime | None
    rule: str | None
    freshness: Freshness
    behind: timedelta | None
    target: timedelta | None
    last: RefreshAttempt | None
    verdict: dict[str, Any] | None
    blocked: bool
    waits: bool = False
    pinned: PinnedView | None = None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object, with times in ISO 8601 and durations in seconds.

        Returns:
            the attributes, except that ``policy`` is called ``refresh``, ``behind`` and ``target``
                end in ``_seconds``, and ``last`` is ``last_attempt``; and ``held`` and ``hold``,
                the names of ``blocked`` and ``pinned`` in older releases.
        """
        pinned = None if self.pinned is None else self.pinned.as_dict()
        return {
            "view": self.view,
            "refresh": self.policy.value,
            "published_version": self.published_version,
            "published_at": self.published_at and self.published_at.isoformat(),
            "rule": self.rule,
            "freshness": self.freshness.value,
            "behind_seconds": None if self.behind is None else self.behind.total_seconds(),
            "target_seconds": None if self.target is None else self.target.total_seconds(),
            "blocked": self.blocked,
            # Key of older releases; so is "hold".
            "held": self.blocked,
            "waits": self.waits,
            "pinned": pinned,
            "hold": pinned,
            "last_attempt": self.last and self.last.as_dict(),
            "verdict": self.verdict,
        }


def view_status(context: GoldContext, view: str, *, now: datetime) -> ViewStatus:
    """The status of a view at a point in time.

    Raises:
        ViewUnknownError: the project has no such view.
    """
    entry = context.entry(view)
    publication = latest_publication(context.published_at(view))
    since = None if publication is None else behind_since(context, publication)
    behind = None if publication is None else timedelta() if since is None else now - since
    seconds = entry.freshness_seconds
    target = None if seconds is None else timedelta(seconds=seconds)
    attempts = context.store.attempts(view, limit=_ATTEMPTS_LOOKED_AT)
    return ViewStatus(
        view=view,
        policy=entry.refresh,
        published_version=None if publication is None else publication.version,
        published_at=None if publication is None else publication.at,
        rule=None if publication is None else publication.watermark.rule,
        freshness=_freshness(behind, target),
        behind=behind,
        target=target,
        last=attempts[0] if attempts else None,
        verdict=next((one.verdict for one in attempts if one.verdict is not None), None),
        blocked=_blocked(attempts),
        waits=bool(attempts) and attempts[0].reason_code == ReasonCode.WAITS_FOR_PERSON,
        pinned=context.store.pinned_views().get(view),
    )


def behind_since(context: GoldContext, publication: Publication) -> datetime | None:
    """Commit time of the oldest change that the publication lacks; None if it lacks none.

    An input that was recreated, or whose old log is gone, counts from the publication on.
    """
    since: list[datetime] = []
    for table, before in publication.watermark.vector:
        location = context.locations.of(table)
        current = log.table_version(location)
        if current is None:
            continue
        lost = current.table_id != before.table_id or current.version < before.version
        if lost or rewritten(publication, table, location):
            since.append(publication.at)
            continue
        # Compactions change no rows.
        first = first_change(location, after=before.version, upto=current.version)
        if first is not None:
            since.append(log.committed_at(location, first) or publication.at)
    return min(since, default=None)


def _freshness(behind: timedelta | None, target: timedelta | None) -> Freshness:
    if behind is None:
        return Freshness.UNPUBLISHED
    if not behind:
        return Freshness.CURRENT
    return Freshness.LATE if target is not None and behind > target else Freshness.BEHIND


def _blocked(attempts: list[RefreshAttempt]) -> bool:
    """Whether the newest result of the newest inputs is blocked.

    Attempts that recompute published versions, such as backfills, do not count.
    """
    ended = (
        one.status for one in attempts if one.status in _ENDED and not _recomputes_published(one)
    )
    return next(ended, None) is AttemptStatus.BLOCKED


def _recomputes_published(attempt: RefreshAttempt) -> bool:
    published = attempt.status is AttemptStatus.PUBLISHED
    return published and attempt.reason_code in _AT_PUBLISHED_VERSIONS


_AT_PUBLISHED_VERSIONS = frozenset(
    {
        ReasonCode.BACKFILLED,
        ReasonCode.REPLAYED,
        ReasonCode.ROLLED_BACK,
        ReasonCode.PROMOTED,
        ReasonCode.COLUMNS_CHANGED,
    }
)
_ENDED = frozenset(
    {
        AttemptStatus.PUBLISHED,
        AttemptStatus.SKIPPED,
        AttemptStatus.FAILED,
        AttemptStatus.BLOCKED,
    }
)

"""Rollback: publishes an earlier content of a view as a new commit, and pins the view.

Delta's RESTORE would keep old transaction numbers and write no watermark. Here the view first gets
a new epoch, so that refreshes planned earlier cannot publish over the rollback, and the commit
records the input versions that its rows come from.
"""

from __future__ import annotations

import secrets
from typing import Any

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import gold_table
from spark_jobs.gold.base.errors import (
    NothingToReleaseError,
    NotPublishedError,
    RollbackRefusedError,
)
from spark_jobs.gold.base.publications import Publication, intruder, publications
from spark_jobs.gold.recover.change_report import change_report
from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.lease import alone
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import Reason, ReasonCode, Rollback
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.request import Why
from spark_jobs.planning.work import work_item
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.replays import (
    Decision,
    DecisionKind,
    ReplayKind,
    ReplayRecord,
    ReplayStatus,
    ReplayView,
    ViewProgress,
    approval,
)
from spark_jobs.state.types import utc_now
from spark_jobs.storage.history import readable

FAILPOINTS = (
    "gold.rollback.begun",
    "gold.rollback.pinned",
    "gold.rollback.renumbered",
    "gold.rollback.planned",
    "gold.rollback.published",
)
_SHOWN = 10


class Rollbacker:
    """Rolls back gold views of one project, and releases them."""

    def __init__(self, refresher: Refresher) -> None:
        self._refresher = refresher
        self._context = refresher.context
        self._store = refresher.context.store

    def target(self, view: str, *, to: int | None = None, replay: str | None = None) -> Publication:
        """The publication whose content a rollback would publish.

        Args:
            view: the gold view.
            to: a version of the published table; None: the publication before the newest change.
            replay: id of a replay or rollback: take the content before it.

        Raises:
            NotPublishedError: nothing is published.
            ReplayNotFoundError: there is no such replay of this view.
            RollbackRefusedError: the version is not a publication, or its files were deleted.
            ViewUnknownError: the project has no such view.
        """
        self._context.entry(view)
        location = self._context.published_at(view)
        found = list(publications(location))
        if not found:
            raise NotPublishedError(view)
        known = [one.version for one in found[1 : _SHOWN + 1] if readable(location, one.version)]
        if replay is not None:
            to = self._store.replay_view(replay, view).before_version
            if to is None:
                raise RollbackRefusedError(view, f"{replay} published nothing", known=known)
        foreign = intruder(location, found[0])
        if to is None and foreign is not None and foreign.version > found[0].version:
            # The newest change is a foreign commit.
            to = found[0].version
        if to is None:
            to = _before_newest_change(found)
        if to is None:
            raise RollbackRefusedError(view, "nothing else was published", known=known)
        chosen = next((one for one in found if one.version == to), None)
        if chosen is None:
            raise RollbackRefusedError(view, f"version {to} is not a publication", known=known)
        if not readable(location, to):
            raise RollbackRefusedError(view, f"files of version {to} were removed", known=known)
        return chosen

    def begin(
        self,
        view: str,
        target: Publication,
        *,
        replay_id: str,
        who: str,
        why: Why,
        approved_by: str | None = None,
    ) -> ReplayRecord:
        """Record the rollback.

        An unfinished one of the same request is resumed, for the reason of the new request. If the
        same person repeats a command whose content is still published, nothing is published again.
        """
        if (done := self._done(view, target, who=who, why=why)) is not None:
            return done
        request = {"views": [view], "version": target.version}
        record = ReplayRecord(
            replay_id=replay_id,
            kind=ReplayKind.ROLLBACK,
            who=who,
            reason=why.reason,
            ticket=why.ticket,
            request=request,
            plan={"attempt": target.watermark.attempt, "vector": target.watermark.vector.as_dict()},
            decisions=approval(approved_by),
        )
        for one in self._store.replays(statuses=(ReplayStatus.RUNNING,), limit=100):
            if one.kind is ReplayKind.ROLLBACK and one.request == request:
                return self._store.ask_again(one.replay_id, record.asked)
        begun = self._store.begin_replay(record, views=[view])
        failpoint("gold.rollback.begun")
        return begun

    def run(self, replay_id: str) -> ReplayView:
        """Pin the view, publish the earlier content, record it; resumes where it was killed.

        Raises:
            LeaseTakenError: another rollback of the view takes long.
            RollbackRefusedError: the files of that version were deleted.
            TableLockedError: another rollback of the view takes long.
            LakehouseError: any other error of staging and publishing.
        """
        (row,) = self._store.replay_views(replay_id)
        # Two processes may have the same rollback: it would fail in the slower one, which would
        # take away the pin of both.
        owner = f"{replay_id} {secrets.token_hex(4)}"
        with alone(self._context, f"rollback/{gold_table(row.view)}", owner=owner):
            return self._run(replay_id)

    def _run(self, replay_id: str) -> ReplayView:
        record = self._store.replay(replay_id)
        (row,) = self._store.replay_views(replay_id)
        if row.status is ViewProgress.PUBLISHED:
            return row
        target = self.target(row.view, to=record.request["version"])
        before = self._store.pinned_views().get(row.view)
        self._store.pin_view(
            PinnedView(
                view=row.view,
                version=target.version,
                who=record.asked.who,
                reason=record.asked.reason,
                replay_id=replay_id,
            )
        )
        failpoint("gold.rollback.pinned")
        try:
            version = self._publish(record, row, target)
        except LakehouseError as error:
            version = self._committed(replay_id, row.view)
            if version is not None:
                return self._done_with(replay_id, row.view, version)
            # Nothing was published, so refreshes may continue, unless another rollback pins it.
            self._unpin(row.view, replay_id, before=before)
            text = f"{error.condition}: {error.primary}"
            self._store.update_replay_view(
                replay_id, row.view, status=ViewProgress.FAILED, error=text
            )
            self._store.end_replay(replay_id, status=ReplayStatus.FAILED, error=text)
            raise
        return self._done_with(replay_id, row.view, version)

    def _done_with(self, replay_id: str, view: str, version: int | None) -> ReplayView:
        """Record that the rollback was published."""
        self._store.update_replay_view(
            replay_id, view, status=ViewProgress.PUBLISHED, published_version=version
        )
        self._store.end_replay(replay_id, status=ReplayStatus.DONE)
        failpoint("gold.rollback.published")
        return self._store.replay_view(replay_id, view)

    def _committed(self, replay_id: str, view: str) -> int | None:
        """The version that a rollback has published, although a later step failed."""
        ledger.settle(self._context, view)
        attempt_id = self._store.replay_view(replay_id, view).attempt_id
        attempt = None if attempt_id is None else self._store.attempt(attempt_id)
        done = attempt is not None and attempt.status is AttemptStatus.PUBLISHED
        return attempt.published_version if attempt is not None and done else None

    def pinned(self, view: str) -> PinnedView | None:
        """The pin of the last rollback; None if the view is not pinned.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        self._context.entry(view)
        return self._store.pinned_views().get(view)

    def release(
        self, view: str, *, who: str, why: Why | None = None, approved_by: str | None = None
    ) -> None:
        """End the pin, so that refreshes continue, and record who decided that.

        Raises:
            NothingToReleaseError: it is not pinned.
            ViewUnknownError: the project has no such view.
        """
        pinned = self.pinned(view)
        decision = Decision(
            what=DecisionKind.PIN_ENDED,
            who=who,
            reason=None if why is None else why.reason,
            ticket=None if why is None else why.ticket,
            approved_by=approved_by,
        )
        if pinned is None or not self._store.end_pin(pinned, decision):
            raise NothingToReleaseError(view)

    def _unpin(self, view: str, replay_id: str, *, before: PinnedView | None) -> None:
        """Put back the pin that a rollback replaced; a later one stays."""
        pinned = self._store.pinned_views().get(view)
        if pinned is None or pinned.replay_id != replay_id:
            return
        if before is None or before.replay_id == replay_id:
            self._store.release(view)
        else:
            self._store.pin_view(before)

    def _done(self, view: str, target: Publication, *, who: str, why: Why) -> ReplayRecord | None:
        """The rollback of the same command, if its content is the newest publication."""
        pinned = self._store.pinned_views().get(view)
        same = pinned and (pinned.version, pinned.who, pinned.reason) == (
            target.version,
            who,
            why.reason,
        )
        if pinned is None or not same:
            return None
        (row,) = self._store.replay_views(pinned.replay_id)
        newest = next(publications(self._context.published_at(view)))
        published = row.status is ViewProgress.PUBLISHED
        if not published or row.published_version != newest.version:
            return None
        return self._store.replay(pinned.replay_id)

    def _publish(self, record: ReplayRecord, row: ReplayView, target: Publication) -> int | None:
        attempt_id = row.attempt_id or self._plan(record, row, target)
        ledger.settle(self._context, row.view)
        attempt = self._store.attempt(attempt_id)
        if attempt.status is AttemptStatus.PUBLISHED:
            return attempt.published_version
        self._refresher.stage(attempt_id)
        # The gate passed this content when it was published, so it is not audited again.
        self._store.update_attempt(
            attempt_id, status=AttemptStatus.AUDITED, verdict=self._verdict(target)
        )
        report = change_report(self._context, work_item(attempt))
        self._store.update_replay_view(
            record.replay_id,
            row.view,
            status=ViewProgress.BUILT,
            before_version=next(publications(self._context.published_at(row.view))).version,
            difference=report.as_dict(),
        )
        version = self._refresher.publish(attempt_id).version
        if version is None:
            raise RollbackRefusedError(row.view, "another rollback was faster", known=())
        return version

    def _verdict(self, target: Publication) -> dict[str, Any]:
        """The verdict of that time: from the ledger, or its summary in the commit."""
        known = self._store.find_attempt(target.watermark.attempt)
        return dict((known.verdict if known else None) or target.watermark.verdict)

    def _plan(self, record: ReplayRecord, row: ReplayView, target: Publication) -> str:
        """Open the attempt in a new epoch, so that attempts planned earlier are superseded."""
        published = next(publications(self._context.published_at(row.view)))
        epoch = self._store.bump_epoch(
            gold_table(row.view),
            reason=f"rollback {record.replay_id}",
            above=published.watermark.epoch,
        )
        failpoint("gold.rollback.renumbered")
        mark = target.watermark
        text = f"rollback to the content of version {target.version}"
        plan = RefreshPlan(
            view=row.view,
            tick=record.replay_id,
            attempt_id="",
            fingerprint=mark.fingerprint,
            decision=Rollback(Reason(ReasonCode.ROLLED_BACK, text), target.version, mark.clock),
            vector=mark.vector,
            changes=(),
            clock=utc_now(),
        )
        attempt = ledger.open_attempt(self._context, plan, epoch=epoch, seconds=0.0)
        self._store.update_replay_view(record.replay_id, row.view, attempt_id=attempt.attempt_id)
        failpoint("gold.rollback.planned")
        return attempt.attempt_id


def _before_newest_change(found: list[Publication]) -> int | None:
    """Version of the publication before the newest one that changed rows."""
    for at, one in enumerate(found[:-1]):
        if one.watermark.changed:
            return found[at + 1].version
    return None

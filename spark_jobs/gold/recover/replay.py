"""Replay: recompute views beside their tables, compare, and publish the difference.

Build, publish and follow are steps; each can be killed and called again with the same id.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Unpack

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import gold_table
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.recover.change_report import change_report
from spark_jobs.gold.recover.recompute import Recomputer, check_not_rolled_back
from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.observe import parked
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.recompute import Recompute
from spark_jobs.planning.replay import ReplayPlan, ViewPlan
from spark_jobs.planning.request import ReplayRequest, Why, downstream
from spark_jobs.planning.work import work_item
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.errors import ReplayRejectedError
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.replays import (
    Decision,
    DecisionKind,
    ReplayKind,
    ReplayRecord,
    ReplayStatus,
    ReplayView,
    ViewChange,
    ViewProgress,
    approval,
)
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log
from spark_jobs.storage.errors import LogUnreadableError

# Failpoints of crash tests, in addition to those of the refresh steps.
FAILPOINTS = (
    "gold.replay.begun",
    "gold.replay.planned",
    "gold.replay.built",
    "gold.replay.committed",
    "gold.replay.published",
    "gold.replay.followed",
)
_ENDED = frozenset({ViewProgress.PUBLISHED, ViewProgress.SKIPPED})


def new_id(kind: ReplayKind) -> str:
    """A new unique id: the kind, the time and some random characters."""
    return f"{kind}-{utc_now():%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


class Replayer:
    """Replays gold views of one project. Planning starts no Spark."""

    def __init__(self, refresher: Refresher) -> None:
        self._refresher = refresher
        self._context = refresher.context
        self._store = refresher.context.store
        self._recomputer = Recomputer(refresher)

    def plan(self, request: ReplayRequest) -> ReplayPlan:
        """What a replay would do now; writes nothing."""
        found, left_out = [], []
        for view in request.views:
            if request.only_stale and self._fresh(view):
                left_out.append(view)
            else:
                found.append(self._view_plan(view, request))
        names = {one.view for one in found}
        return ReplayPlan(
            request=request,
            views=tuple(found),
            left_out=tuple(left_out),
            followers=self._ordered(downstream(self._context.manifest, names) - names),
        )

    def begin(
        self,
        plan: ReplayPlan,
        *,
        replay_id: str,
        who: str,
        why: Why,
        approved_by: str | None = None,
    ) -> ReplayRecord:
        """Record the replay; one that is already recorded is continued, and asked for again."""
        record = ReplayRecord(
            replay_id=replay_id,
            kind=ReplayKind.REPLAY,
            who=who,
            reason=why.reason,
            ticket=why.ticket,
            request=plan.request.as_dict(),
            plan=plan.as_dict(),
            decisions=approval(approved_by),
        )
        self._store.begin_replay(record, views=[one.view for one in plan.views])
        begun = self._store.ask_again(replay_id, record.asked)
        failpoint("gold.replay.begun")
        return begun

    def unfinished(self, request: ReplayRequest) -> ReplayRecord | None:
        """A running replay with the same request, or None."""
        running = self._store.replays(statuses=(ReplayStatus.RUNNING,), limit=100)
        asked = request.as_dict()
        return next((one for one in running if one.request == asked), None)

    def views(self, replay_id: str) -> list[ReplayView]:
        """The views of a replay with their progress; empty if it was never begun."""
        return self._store.replay_views(replay_id)

    def build(self, replay_id: str, view: str) -> ReplayView:
        """Recompute a view beside its table, audit it, and record the difference.

        Raises:
            GateBlockedError: a critical expectation failed; the published content stays.
            LakehouseError: any other error of the steps.
        """
        row = self._settled(replay_id, view)
        if row.status in _ENDED:
            return row
        record = self._store.replay(replay_id)
        request = ReplayRequest.from_dict(record.request)
        asked = Recompute(code=ReasonCode.REPLAYED, time=request.time, piece=request.piece)
        with self._noted(replay_id, view):
            check_not_rolled_back(self._store, view, since=record.started_at)
            plan = self._recomputer.plan(view, tick=replay_id, asked=asked)
            self._change(replay_id, view, attempt_id=plan.attempt_id)
            failpoint("gold.replay.planned")
            if plan.skips:
                return self._change(replay_id, view, status=ViewProgress.SKIPPED, error=plan.line)
            self._built(replay_id, view, self._recomputer.build(plan.attempt_id))
        failpoint("gold.replay.built")
        return self._store.replay_view(replay_id, view)

    def publish(self, replay_id: str, view: str) -> ReplayView:
        """Commit the built result, or rebuild it at newer versions if a live refresh was first.

        Raises:
            GateBlockedError: a critical expectation failed at the newer versions.
            LakehouseError: any other error of the steps.
        """
        row = self._settled(replay_id, view)
        if row.status in _ENDED:
            return row
        if row.status is not ViewProgress.BUILT or row.attempt_id is None:
            row = self.build(replay_id, view)
            if row.status in _ENDED or row.attempt_id is None:
                return row
        with self._noted(replay_id, view):
            published = self._recomputer.publish(
                row.attempt_id, on_built=lambda later: self._built(replay_id, view, later)
            )
        failpoint("gold.replay.committed")
        return self._published(replay_id, view, published.version)

    def follow(self, replay_id: str) -> dict[str, str]:
        """Refresh the replayed views and all views that read them.

        It publishes what arrived during the replay, and what changed in upstream views, as any
        refresh does.

        Returns:
            one line of text per view, by the view's name; a view that fails does not stop the
                others.
        """
        replayed = {
            one.view
            for one in self._store.replay_views(replay_id)
            if one.status is ViewProgress.PUBLISHED
        }
        news = {}
        for view in self._ordered(downstream(self._context.manifest, replayed)):
            try:
                done = self._refresher.run(
                    view, tick=_follow(replay_id), let_pass=f"{replay_id} was asked for"
                )
                news[view] = done.plan.line
            except LakehouseError as error:
                news[view] = f"failed: {error.condition}: {error.primary}"
        failpoint("gold.replay.followed")
        return news

    def followed(self, replay_id: str) -> list[str]:
        """The attempts that ``follow`` published, in order."""
        done = self._store.attempts(
            tick=_follow(replay_id), statuses=(AttemptStatus.PUBLISHED,), limit=1000
        )
        return [one.attempt_id for one in reversed(done)]

    def end(self, replay_id: str, *, problems: tuple[str, ...] = ()) -> ReplayRecord:
        """Record the end: done if all views are published or skipped and there are no problems."""
        rows = self._store.replay_views(replay_id)
        problems += tuple(
            f"{one.view}: {one.error or one.status}" for one in rows if one.status not in _ENDED
        )
        status = ReplayStatus.FAILED if problems else ReplayStatus.DONE
        self._store.end_replay(replay_id, status=status, error="\n".join(problems) or None)
        return self._store.replay(replay_id)

    def reject(self, replay_id: str, *, who: str) -> None:
        """Record that a person rejected the replay."""
        decision = Decision(what=DecisionKind.REJECTED, who=who)
        self._store.add_decision(replay_id, decision)
        self._store.end_replay(replay_id, status=ReplayStatus.REJECTED)

    def run(
        self, replay_id: str, *, on_step: Callable[[str, str], None] = lambda *_: None
    ) -> ReplayRecord:
        """Run all remaining steps; a view that fails does not stop the others.

        Args:
            replay_id: the id that ``begin`` recorded.
            on_step: called with each step's name and view.

        Raises:
            ReplayNotFoundError: there is no replay of that id.
            ReplayRejectedError: a person rejected it.
        """
        record = self._store.replay(replay_id)
        if record.status is ReplayStatus.REJECTED:
            raise ReplayRejectedError(replay_id, record.rejected_by or "a person")
        self._store.end_replay(replay_id, status=ReplayStatus.RUNNING)
        views = [one.view for one in self._store.replay_views(replay_id)]
        for step in (self.build, self.publish):
            for view in views:
                row = self._store.replay_view(replay_id, view)
                if step == self.publish and row.status is ViewProgress.FAILED:
                    continue
                on_step(step.__name__, view)
                # The error is recorded with the view and reported at the end.
                with suppress(LakehouseError):
                    step(replay_id, view)
        on_step("follow", "")
        news = self.follow(replay_id)
        failed = tuple(f"{view}: {text}" for view, text in news.items() if "failed:" in text)
        return self.end(replay_id, problems=failed)

    def _view_plan(self, view: str, request: ReplayRequest) -> ViewPlan:
        asked = Recompute(code=ReasonCode.REPLAYED, time=request.time, piece=request.piece)
        location = self._context.published_at(view)
        rows = None
        with suppress(LogUnreadableError):
            rows = log.size(location).rows if log.table_version(location) else None
        return ViewPlan(
            refresh=self._recomputer.explain(view, asked=asked),
            rows=rows,
            in_the_way=tuple(self._in_the_way(view)),
        )

    def _in_the_way(self, view: str) -> list[str]:
        found = []
        if (lease := self._store.lease_holder(gold_table(view))) is not None:
            found.append(f"{lease.owner} writes it until {lease.expires_at:%H:%M:%S} UTC")
        if (reason := parked(self._context, view)) is not None:
            found.append(reason.text)
        running = self._store.replays(statuses=(ReplayStatus.RUNNING,), limit=100)
        found += [
            f"{one.kind} {one.replay_id} has not ended"
            for one in running
            if view in one.request["views"]
        ]
        return found

    def _fresh(self, view: str) -> bool:
        return self._refresher.explain(view).reason.code is ReasonCode.NO_UPSTREAM_CHANGE

    def _ordered(self, views: set[str]) -> tuple[str, ...]:
        tiers = self._context.manifest.gold_by_tier()
        return tuple(one.name for tier in tiers for one in tier if one.name in views)

    def _settled(self, replay_id: str, view: str) -> ReplayView:
        """The view's row, updated from the published table's log."""
        ledger.settle(self._context, view)
        row = self._store.replay_view(replay_id, view)
        if row.status not in _ENDED:
            done = self._store.attempts(
                view, tick=replay_id, statuses=(AttemptStatus.PUBLISHED,), limit=1
            )
            if done:
                return self._published(replay_id, view, done[0].published_version)
        return row

    def _built(self, replay_id: str, view: str, attempt_id: str) -> None:
        report = change_report(self._context, work_item(self._store.attempt(attempt_id)))
        latest = latest_publication(self._context.published_at(view))
        self._change(
            replay_id,
            view,
            status=ViewProgress.BUILT,
            attempt_id=attempt_id,
            before_version=None if latest is None else latest.version,
            difference=report.as_dict(),
            error=None,
        )

    def _published(self, replay_id: str, view: str, version: int | None) -> ReplayView:
        pinned = self._store.pinned_views().get(view)
        if pinned is not None and pinned.since < self._store.replay(replay_id).started_at:
            self._store.release(view)
        row = self._change(
            replay_id, view, status=ViewProgress.PUBLISHED, published_version=version, error=None
        )
        failpoint("gold.replay.published")
        return row

    def _change(self, replay_id: str, view: str, **change: Unpack[ViewChange]) -> ReplayView:
        self._store.update_replay_view(replay_id, view, **change)
        return self._store.replay_view(replay_id, view)

    @contextmanager
    def _noted(self, replay_id: str, view: str) -> Iterator[None]:
        """Record an error of the block with the view."""
        try:
            yield
        except LakehouseError as error:
            text = f"{error.condition}: {error.primary}"
            self._change(replay_id, view, status=ViewProgress.FAILED, error=text)
            raise


def _follow(replay_id: str) -> str:
    """The tick of the refreshes after a replay."""
    return f"{replay_id}/follow"

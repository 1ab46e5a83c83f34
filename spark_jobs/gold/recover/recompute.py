"""Recomputes a view on request, beside its live refreshes.

A live refresh may publish while a long recomputation runs. The rows are then computed again at the
newer versions, while live refreshes of the view skip. So the table never goes back to older inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from time import perf_counter

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import (
    BaseMovedError,
    RecomputeOvertakenError,
    RecomputeStoppedError,
)
from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.observe import catch_up, estimate, inputs_readable, newest, observe
from spark_jobs.gold.refresh.publishing import Published
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.recompute import RECOMPUTE_WORDS, Recompute, plan_recompute
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now

# Live refreshes that were planned earlier may still publish: rarely more than one.
_ROUNDS = 5


def check_not_rolled_back(store: ControlStore, view: str, *, since: datetime) -> None:
    """A rollback that a person made after a recomputation had begun stays.

    Raises:
        RecomputeStoppedError: there is one.
    """
    pinned = store.pinned_views().get(view)
    if pinned is not None and pinned.since >= since:
        why = f"{pinned.who} has rolled it back since ({pinned.reason})"
        raise RecomputeStoppedError(view, why)


class Recomputer:
    """Plans, builds and publishes; each step can be killed and called again."""

    def __init__(self, refresher: Refresher) -> None:
        self._refresher = refresher
        self._context: GoldContext = refresher.context

    def explain(self, view: str, *, asked: Recompute) -> RefreshPlan:
        """The plan of a recomputation now; writes nothing.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        plan, _ = self._plan(view, tick="", asked=asked)
        return plan

    def plan(self, view: str, *, tick: str, asked: Recompute) -> RefreshPlan:
        """Plan, and open the attempt in the ledger.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        started = perf_counter()
        self._context.entry(view)
        ledger.settle(self._context, view)
        plan, epoch = self._plan(view, tick=tick, asked=asked)
        seconds = perf_counter() - started
        attempt = ledger.open_attempt(self._context, plan, epoch=epoch, seconds=seconds)
        failpoint("gold.plan.recorded")
        return ledger.with_attempt(plan, attempt)

    def build(self, attempt_id: str) -> str:
        """Stage and audit; returns the attempt that was built, which may be a newer one.

        Raises:
            GateBlockedError: a critical expectation failed; the published content stays.
            RecomputeOvertakenError: live refreshes published first in every round.
            RecomputeStoppedError: the view must not be recomputed any more.
        """
        attempt_id = self.stage(attempt_id)
        try:
            self._refresher.audit(attempt_id)
        except BaseMovedError:
            attempt = self._refresher.supersede(attempt_id)
            with self._yielding_to_live(attempt):
                return self._build_again(attempt)
        return attempt_id

    def stage(self, attempt_id: str) -> str:
        """Stage; returns the attempt that was staged, which may be a newer one.

        Raises:
            RecomputeOvertakenError: live refreshes published first in every round.
            RecomputeStoppedError: the view must not be recomputed any more.
        """
        try:
            self._refresher.stage(attempt_id)
        except BaseMovedError:
            attempt = self._refresher.supersede(attempt_id)
            with self._yielding_to_live(attempt):
                return self._stage_again(attempt)
        return attempt_id

    def publish(
        self, attempt_id: str, *, on_built: Callable[[str], None] = lambda _: None
    ) -> Published:
        """Publish the built result, or rebuild it at newer versions if a live refresh was first.

        Args:
            attempt_id: the attempt that ``build`` returned.
            on_built: called with each newer attempt before it is published.

        Raises:
            GateBlockedError: a critical expectation failed at the newer versions.
            RecomputeOvertakenError: live refreshes published first in every round.
            RecomputeStoppedError: the view must not be recomputed any more.
        """
        published = self._publish(attempt_id)
        if published is not None:
            return published
        attempt = self._refresher.supersede(attempt_id)
        with self._yielding_to_live(attempt):
            for _ in range(_ROUNDS):
                attempt_id = self._build_again(attempt)
                on_built(attempt_id)
                published = self._publish(attempt_id)
                if published is not None:
                    return published
                attempt = self._refresher.supersede(attempt_id)
        raise RecomputeOvertakenError(attempt.view)

    def _plan(self, view: str, *, tick: str, asked: Recompute) -> tuple[RefreshPlan, int]:
        entry = self._context.entry(view)
        seen = observe(self._context, view, pin=newest)
        readable = inputs_readable(self._context, seen.published)
        plan = plan_recompute(
            entry, seen, tick=tick, clock=utc_now(), asked=asked, readable=readable
        )
        if not plan.skips:
            plan = replace(plan, estimate=estimate(self._context, plan))
        return plan, seen.epoch

    def _stage_again(self, before: RefreshAttempt) -> str:
        asked = Recompute.again(before.reason_code or "", before.scope)
        for _ in range(_ROUNDS):
            check_not_rolled_back(self._context.store, before.view, since=before.started_at)
            plan = self.plan(before.view, tick=before.tick, asked=asked)
            if plan.skips:
                raise RecomputeStoppedError(before.view, plan.reason.text)
            attempt_id = plan.attempt_id
            try:
                self._refresher.stage(attempt_id)
            except BaseMovedError:
                self._refresher.supersede(attempt_id)
            else:
                return attempt_id
        raise RecomputeOvertakenError(before.view)

    def _build_again(self, before: RefreshAttempt) -> str:
        for _ in range(_ROUNDS):
            attempt_id = self._stage_again(before)
            try:
                self._refresher.audit(attempt_id)
            except BaseMovedError:
                self._refresher.supersede(attempt_id)
            else:
                return attempt_id
        raise RecomputeOvertakenError(before.view)

    def _publish(self, attempt_id: str) -> Published | None:
        try:
            published = self._refresher.publish(attempt_id)
        except BaseMovedError:
            return None
        return None if published.superseded else published

    def _yielding_to_live(self, attempt: RefreshAttempt) -> AbstractContextManager[object]:
        """Make live refreshes skip the view while the context lasts."""
        return self._context.store.lease(
            catch_up(attempt.view),
            owner=f"{RECOMPUTE_WORDS[ReasonCode(attempt.reason_code or '')]} {attempt.tick}",
            seconds=self._context.settings.gold.lease_seconds,
        )

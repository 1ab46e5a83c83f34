"""The refresh of a gold view as steps that run one by one or all together.

Each step can be killed and run again with the same attempt; the result is published once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.base.errors import AttemptStateError, BaseMovedError
from spark_jobs.gold.compute.aggregate_state import sweep_groups
from spark_jobs.gold.compute.pinned import query_failures
from spark_jobs.gold.refresh import auditing, ledger, publishing, staging
from spark_jobs.gold.refresh.arrivals import arrivals
from spark_jobs.gold.refresh.observe import Pin, completed, estimate, newest, observe, pinned_for
from spark_jobs.gold.refresh.publishing import Published
from spark_jobs.gold.refresh.staging import StagedResult
from spark_jobs.gold.refresh.waiting import keeps_waiting
from spark_jobs.gold.telemetry.reporting import report_end
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableVersion
from spark_jobs.planning.breaker import guarded, usual_rows
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import RefreshPlan, plan_refresh
from spark_jobs.planning.work import work_item
from spark_jobs.quality.errors import GateBlockedError, StillBlockedError
from spark_jobs.quality.verdict import Verdict
from spark_jobs.settings import Settings
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.store import ControlStore
from spark_jobs.state.ticks import CONTINUOUS
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log
from spark_jobs.storage.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How often a refresh is planned while others publish first.
ROUNDS = 3
# Failpoints of crash tests; state changes between any two of them.
FAILPOINTS = (
    "gold.plan.recorded",
    "gold.stage.before_write",
    "gold.stage.written",
    "gold.stage.recorded",
    "gold.audit.judged",
    "gold.audit.recorded",
    "gold.publish.locked",
    "gold.publish.before_commit",
    "gold.publish.committed",
    "gold.publish.cleaned",
    "gold.publish.recorded",
)
KEPT_FAILPOINTS = ("gold.stage.groups_written",)  # Of refreshes with aggregate state.


@dataclass(frozen=True)
class Outcome:
    """The result of a refresh.

    Attributes:
        version: the published table's version, if this attempt published.
        changed: whether the publication changed any row.
    """

    plan: RefreshPlan
    status: AttemptStatus
    rows: int | None
    bytes: int | None
    seconds: float
    version: int | None
    changed: bool
    verdict: dict[str, Any] | None

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the keys of ``RefreshPlan.as_dict``, and the other attributes."""
        return {
            **self.plan.as_dict(),
            "status": self.status.value,
            "rows": self.rows,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "version": self.version,
            "changed": self.changed,
            "verdict": self.verdict,
        }


class Refresher:
    """Refreshes the gold views of one project. Planning starts no Spark."""

    def __init__(
        self,
        settings: Settings,
        manifest: Manifest,
        store: ControlStore,
        *,
        session_factory: Callable[[Settings], SparkSession] = open_session,
        now: Callable[[], datetime] = utc_now,
        announces: bool = False,
    ) -> None:
        self.context = GoldContext(settings, manifest, store, session_factory, announces=announces)
        self._now = now

    def explain(self, view: str) -> RefreshPlan:
        """The plan of a refresh now; writes and pins nothing.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        return self._plan(view, tick="", force=False, pin=newest)[0]

    def plan(
        self,
        view: str,
        *,
        tick: str,
        force: bool = False,
        let_pass: str | None = None,
        asked_by: str | None = None,
    ) -> RefreshPlan:
        """Plan with the tick's versions, and open the attempt in the ledger.

        Args:
            view: the gold view.
            tick: name of the tick; its views read the same versions.
            force: recompute even if no input changed.
            let_pass: who approves a refresh that would wait for a person, and why.
            asked_by: the person who asks for the refresh; None: a schedule or a stream. Its result
                replaces a blocked result that waits.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        started = perf_counter()
        self.context.entry(view)
        ledger.settle(self.context, view)
        pin = pinned_for(self.context, view, tick)
        plan, epoch = self._plan(view, tick=tick, force=force, pin=pin, let_pass=let_pass)
        seconds = perf_counter() - started
        return self._recorded(plan, epoch=epoch, seconds=seconds, asked_by=asked_by)

    def follow(self, view: str, *, pin: Pin) -> RefreshPlan:
        """Plan for a continuous view; plans that skip are not recorded.

        Args:
            view: the gold view.
            pin: gives the versions that the views of a pass share.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        started = perf_counter()
        self.context.entry(view)
        ledger.settle(self.context, view)
        plan, epoch = self._plan(view, tick=CONTINUOUS, force=False, pin=pin)
        if plan.skips and not self._waits_again(plan):
            return plan
        return self._recorded(plan, epoch=epoch, seconds=perf_counter() - started)

    def stage(self, attempt_id: str) -> StagedResult:
        """Compute the result beside the published table.

        Raises:
            AttemptStateError: the plan was to skip.
            BaseMovedError: the publication or the definition is not the planned one any more.
            QueryFailedError: Spark refuses or fails the query.
        """
        attempt = self._attempt(attempt_id, step="stage")
        begins = attempt.status in {AttemptStatus.PLANNED, AttemptStatus.FAILED}
        done = AttemptStatus.STAGED if begins else None
        there = begins and log.table_version(staging.staged_at(self.context, attempt)) is not None
        with ledger.timed_step(self.context, attempt, "stage", done=done) as facts:
            staged = staging.staged_once(self.context, work_item(attempt))
            facts |= {"rows": staged.rows, "bytes": staged.bytes, "counted": staged.counted}
            # If a killed process staged it, the seconds here say nothing about the next time.
            facts |= {"engine": staged.engine, **({"resumed": True} if there else {})}
        failpoint("gold.stage.recorded")
        return staged

    def audit(self, attempt_id: str) -> Verdict:
        """Audit the staged result.

        Raises:
            GateBlockedError: a critical expectation failed; the published content stays.
            StillBlockedError: the same, and an earlier blocked result keeps waiting for a person.
            AttemptStateError: nothing is staged, or the plan was to skip.
            BaseMovedError: a newer refresh was published first.
        """
        attempt = self._attempt(attempt_id, step="audit")
        if log.table_version(staging.staged_at(self.context, attempt)) is None:
            raise ledger.nothing_staged(self.context, attempt)
        with ledger.timed_step(self.context, attempt, "audit"):
            verdict = auditing.audit(self.context, work_item(attempt))
        failpoint("gold.audit.judged")
        blocked = GateBlockedError(verdict) if verdict.blocking else None
        if blocked is not None and (waiting := keeps_waiting(self.context, attempt)) is not None:
            self._keep(waiting, attempt, verdict)
        recorded = self.context.store.update_attempt(
            attempt_id,
            status=AttemptStatus.AUDITED if blocked is None else AttemptStatus.BLOCKED,
            verdict=verdict.as_dict(),
            error=None if blocked is None else str(blocked),
        )
        failpoint("gold.audit.recorded")
        if blocked is not None:
            report_end(self.context, recorded)
            raise blocked
        return verdict

    def publish(self, attempt_id: str) -> Published:
        """Commit the audited result to the published table, once.

        Raises:
            AttemptStateError: the result did not pass the audit.
            BaseMovedError: a change was computed for another publication than the newest.
            LeaseTakenError: another writer holds the table's lease.
            QueryFailedError: Spark cannot read the staged rows or write the table.
        """
        attempt = self._attempt(attempt_id, step="publish")
        if not _passed(attempt):
            raise AttemptStateError(attempt_id, status=attempt.status, step="publish")
        timed = ledger.timed_step(self.context, attempt, "publish")
        with timed as facts, query_failures(attempt.view):
            published = publishing.publish(self.context, work_item(attempt))
            facts["changed"] = published.changed
        self._record(attempt, published)
        return published

    def run(
        self,
        view: str,
        *,
        tick: str,
        force: bool = False,
        let_pass: str | None = None,
        asked_by: str | None = None,
    ) -> Outcome:
        """Plan, stage, audit, publish and record; for the arguments see ``plan``.

        If another refresh publishes first, even of older input, it is planned again on top of that.

        Raises:
            BaseMovedError: other refreshes published first in every round.
            GateBlockedError: a critical expectation failed; the published content stays.
            LakehouseError: any other error of the steps.
        """
        started = perf_counter()
        for left in reversed(range(ROUNDS)):
            plan = self.plan(view, tick=tick, force=force, let_pass=let_pass, asked_by=asked_by)
            try:
                self.carry_out(plan)
            except BaseMovedError:
                if not left:
                    raise
                self.supersede(plan.attempt_id)
            if self.context.store.attempt(plan.attempt_id).status is not AttemptStatus.SUPERSEDED:
                break
        return self.outcome(plan, seconds=perf_counter() - started)

    def supersede(self, attempt_id: str) -> RefreshAttempt:
        """Record that another refresh was published first."""
        return self.context.store.update_attempt(
            attempt_id, status=AttemptStatus.SUPERSEDED, error=None
        )

    def carry_out(self, plan: RefreshPlan, *, on_step: Callable[[str], None] | None = None) -> None:
        """Run the steps after the plan; ``on_step`` is called with each step's name first.

        Raises:
            GateBlockedError: a critical expectation failed; the published content stays.
            LakehouseError: any other error of the steps.
        """
        steps = {"stage": self.stage, "audit": self.audit, "publish": self.publish}
        for name, step in steps.items() if not plan.skips else ():
            if on_step is not None:
                on_step(name)
            step(plan.attempt_id)

    def outcome(self, plan: RefreshPlan, *, seconds: float) -> Outcome:
        """The result of a plan's attempt, from the ledger."""
        attempt = self.context.store.attempt(plan.attempt_id)
        actual = attempt.actual or {}
        return Outcome(
            plan=plan,
            status=attempt.status,
            rows=actual.get("rows"),
            bytes=actual.get("bytes"),
            seconds=seconds,
            version=attempt.published_version,
            changed=bool(actual.get("changed")),
            verdict=attempt.verdict,
        )

    def begin_epoch(self, view: str, *, reason: str) -> int:
        """Start a new epoch of the view's publications, for instance after a restore.

        Raises:
            ViewUnknownError: the project has no such view.
        """
        self.context.entry(view)
        published = observe(self.context, view, pin=newest).published
        above = published.epoch if published else 0
        return self.context.store.bump_epoch(gold_table(view), reason=reason, above=above)

    def _plan(
        self, view: str, *, tick: str, force: bool, pin: Pin, let_pass: str | None = None
    ) -> tuple[RefreshPlan, int]:
        entry = self.context.entry(view)
        seen, clock = observe(self.context, view, pin=pin), self._now()
        seen = seen if force else completed(self.context, view, seen, clock=clock)
        plan = plan_refresh(entry, seen, tick=tick, clock=clock, force=force)
        if not plan.skips:
            plan = replace(plan, estimate=estimate(self.context, plan))
            plan = guarded(
                plan,
                usual=usual_rows(ledger.rows_read(self.context, view)),
                limits=self.context.settings.breaker,
                arrivals=arrivals(self.context, view, published=seen.published),
                let_pass=let_pass,
            )
        return plan, seen.epoch

    def _waits_again(self, plan: RefreshPlan) -> bool:
        """Whether to record that a view waits for a person: once, and not in every pass."""
        if plan.reason.code is not ReasonCode.WAITS_FOR_PERSON:
            return False
        last = self.context.store.attempts(plan.view, limit=1)
        return not last or last[0].reason_code != plan.reason.code

    def _recorded(
        self, plan: RefreshPlan, *, epoch: int, seconds: float, asked_by: str | None = None
    ) -> RefreshPlan:
        attempt = ledger.open_attempt(
            self.context, plan, epoch=epoch, seconds=seconds, asked_by=asked_by
        )
        failpoint("gold.plan.recorded")
        return ledger.with_attempt(plan, attempt)

    def _attempt(self, attempt_id: str, *, step: str) -> RefreshAttempt:
        attempt = self.context.store.attempt(attempt_id)
        if attempt.status is AttemptStatus.SKIPPED:
            raise AttemptStateError(attempt_id, status=attempt.status, step=step)
        return attempt

    def _keep(self, waiting: RefreshAttempt, attempt: RefreshAttempt, verdict: Verdict) -> NoReturn:
        """Supersede an attempt, because an earlier blocked result waits for a decision."""
        still = StillBlockedError(verdict, waiting.attempt_id)
        staging.discard(self.context, attempt)
        ledger.end_attempt(
            self.context,
            attempt.attempt_id,
            status=AttemptStatus.SUPERSEDED,
            verdict=verdict.as_dict(),
            error=str(still),
        )
        raise still

    def _record(self, attempt: RefreshAttempt, published: Published) -> None:
        view = attempt.view
        # Before the ledger is updated: a published attempt is never looked at again.
        staging.discard(self.context, attempt)
        failpoint("gold.publish.cleaned")
        if published.version is None:
            ledger.end_attempt(self.context, attempt.attempt_id, status=AttemptStatus.SUPERSEDED)
        else:
            self._pin(attempt.tick, view, published.version)
            ledger.end_attempt(
                self.context,
                attempt.attempt_id,
                status=AttemptStatus.PUBLISHED,
                published_version=published.version,
                error=None,
            )
        failpoint("gold.publish.recorded")
        ledger.settle(self.context, view)
        ledger.sweep(self.context, view)
        sweep_groups(self.context, view)

    def _pin(self, tick: str, view: str, version: int) -> None:
        """Pin the new version for the views that read this one in the same tick."""
        if tick == CONTINUOUS:
            return
        found = log.table_version(self.context.published_at(view))
        if found is not None:
            pin = TableVersion(found.table_id, version)
            self.context.store.pin_version(tick, gold_table(view), pin)


def _passed(attempt: RefreshAttempt) -> bool:
    """Whether the gate passed the attempt, even if a later step has failed since."""
    verdict = attempt.verdict
    return verdict is not None and attempt.status is not AttemptStatus.BLOCKED

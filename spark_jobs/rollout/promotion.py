"""Promotes an environment: publishes each of its views in one commit, and puts its SQL in force.

The gate audits all views before the first is published, and refreshes of these views skip
meanwhile. Each publication has a new epoch, like a rollback, because the environment may have been
built from older input versions than production shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.base.publications import latest_publication, publication_of
from spark_jobs.gold.environment.surroundings import places_of
from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.auditing import judged
from spark_jobs.gold.refresh.observe import catch_up
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.names import Layer, TableVersion
from spark_jobs.planning.decision import Promotion, Reason, ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.vector import VersionVector
from spark_jobs.quality.verdict import Verdict
from spark_jobs.rollout.apply import Applied, Note, apply
from spark_jobs.rollout.environments import check_gate
from spark_jobs.rollout.promotion_plan import PlannedPromotion
from spark_jobs.rollout.steps import Carrier
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.environments import Environment, EnvironmentStatus, ViewState
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.types import JsonObject, utc_now
from spark_jobs.storage import log, reader

FAILPOINTS = (
    "promotion.begun",
    "apply.begun",
    "apply.manifest.ends",
    "apply.promote.begins",
    "promotion.renumbered",
    "promotion.planned",
    "gold.publish.before_commit",
    "gold.publish.committed",
    "promotion.published",
    "apply.promote.ends",
    "apply.all_done",
)
# The record of a view that was refreshed instead of published.
_REFRESHED: JsonObject = {}


@dataclass
class Promoter:
    """Publishes the views of one environment; the caller holds the locks.

    Attributes:
        refresher: with the new manifest.
        who: the person who asked for it.
    """

    refresher: Refresher
    planned: PlannedPromotion
    who: str
    environment: Environment = field(init=False)
    _verdicts: dict[str, Verdict] = field(default_factory=dict, init=False)
    _leases: dict[str, ExitStack] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Load the stored state."""
        self.environment = self.planned.environment

    def run(self, *, watch: Callable[[Step], AbstractContextManager[Any]]) -> Applied:
        """Audit, put in force, publish; resumes after a kill or failure.

        Args:
            watch: shows a running step: a context manager.

        Raises:
            EnvironmentBlockedError: the gate blocks a view; nothing was changed.
            LeaseTakenError: a replay is about to publish one of the views.
            LakehouseError: any error of ``rollout.apply.apply``.
        """
        context = self.refresher.context
        self._judge()
        self._keep(replace(self.environment, status=EnvironmentStatus.PROMOTING))
        failpoint("promotion.begun")
        with ExitStack() as held:
            # Also for published views: a killed run may have left its lease.
            for view in self.environment.views:
                self._leases[view] = held.enter_context(ExitStack())
                lease = context.store.lease(
                    catch_up(view),
                    owner=f"promotion of environment {self.environment.name}",
                    seconds=context.settings.gold.lease_seconds,
                )
                self._leases[view].enter_context(lease)
            applied = apply(
                context.settings,
                context.store,
                self.planned.planned,
                who=self.who,
                carry=self.carry,
                watch=watch,
            )
        if not applied.failed:
            views = {
                view: replace(one, state=ViewState.PROMOTED)
                for view, one in self.environment.views.items()
            }
            done = replace(self.environment, status=EnvironmentStatus.PROMOTED, views=views)
            self._keep(replace(done, deployment=applied.deployment))
        return applied

    def carry(self, step: Step, deployment: Deployment, note: Note) -> str | None:
        """Carry out a step; returns a message for the user, or None."""
        context = self.refresher.context
        if step.kind is not StepKind.PROMOTE:
            carrier = Carrier(context.settings, context.store, context.manifest)
            return carrier.carry(step, deployment, note)
        return self._publish(step.subject.partition(".")[2], deployment.deployment_id)

    def _judge(self) -> None:
        """Audit all open views, as built in the environment.

        Raises:
            EnvironmentBlockedError: the gate blocks a view.
        """
        own = self.refresher.context
        places = places_of(self.environment.name, self.environment.views)
        context = GoldContext(
            own.settings, own.manifest, own.store, lambda _: own.spark, places=places
        )
        judging = self.environment
        for view in self.planned.left:
            table, location = _version(judging.views[view].table), context.published_at(view)
            verdict = self._verdicts[view] = judged(
                context,
                view,
                lambda location=location, table=table: reader.read(  # type: ignore[misc]
                    context.spark, location, table.version
                ),
                rows=log.size(location, table.version).rows,
                location=location,
            )
            if verdict.blocking:
                problem = "; ".join(one.message for one in verdict.blocking)
                blocked = replace(judging.views[view], state=ViewState.BLOCKED, problem=problem)
                judging = judging.with_view(view, blocked)
        check_gate(judging)

    def _publish(self, view: str, tick: str) -> str | None:
        context, one = self.refresher.context, self.environment.views[view]
        location = context.published_at(view)
        if one.attempt is not None and one.published is None:
            found = publication_of(location, one.attempt)
            if found is not None:
                # An earlier run was killed between the commit and its record.
                ledger.settle(context, view)
                self._note_published(view, found.version)
                return None
        vector = self._vector(view)
        if vector is None or self._shows_newer(view, vector):
            return self._refresh(view, tick)
        version = self._commit(view, vector, tick)
        if version is None:
            return self._refresh(view, tick)
        self._note_published(view, version)
        return None

    def _commit(self, view: str, vector: VersionVector, tick: str) -> int | None:
        """Publish a view's rows; None if a refresh in a later epoch was first."""
        context, one = self.refresher.context, self.environment.views[view]
        latest = latest_publication(context.published_at(view))
        epoch = context.store.bump_epoch(
            gold_table(view),
            reason=f"promotion {tick}",
            above=0 if latest is None else latest.watermark.epoch,
        )
        failpoint("promotion.renumbered")
        entry, name = context.entry(view), self.environment.name
        text = f"promotion of environment {name}"
        clock = None if one.clock is None else datetime.fromisoformat(one.clock)
        plan = RefreshPlan(
            view=view,
            tick=tick,
            attempt_id="",
            fingerprint=entry.fingerprint,
            decision=Promotion(
                Reason(ReasonCode.PROMOTED, text), name, _version(one.table).version, clock
            ),
            vector=vector,
            changes=(),
            clock=utc_now(),
        )
        attempt = ledger.open_attempt(context, plan, epoch=epoch, seconds=0.0, asked_by=self.who)
        self._keep(self.environment.with_view(view, replace(one, attempt=attempt.attempt_id)))
        failpoint("promotion.planned")
        self.refresher.stage(attempt.attempt_id)
        context.store.update_attempt(
            attempt.attempt_id,
            status=AttemptStatus.AUDITED,
            verdict=self._verdicts[view].as_dict(),
        )
        published = self.refresher.publish(attempt.attempt_id)
        failpoint("promotion.published")
        return published.version

    def _vector(self, view: str) -> VersionVector | None:
        """A view's input versions in production: upstream views at the versions just published.

        None if an upstream view was refreshed instead, so that production has no version of it with
        the rows that this view was computed from.
        """
        views = self.environment.views
        versions = dict(VersionVector.from_dict(views[view].vector).versions)
        for table in versions:
            if table.layer is Layer.GOLD and table.name in views:
                published = views[table.name].published
                if not published:
                    return None
                versions[table] = _version(published)
        return VersionVector(versions)

    def _shows_newer(self, view: str, vector: VersionVector) -> bool:
        """Whether a refresh of this definition has published these input versions or later ones."""
        context = self.refresher.context
        latest = latest_publication(context.published_at(view))
        if latest is None or latest.watermark.fingerprint != context.entry(view).fingerprint:
            return False
        shown = latest.watermark.vector
        return all(
            (found := shown.get(table)) is not None
            and found.table_id == version.table_id
            and found.version >= version.version
            for table, version in vector
        )

    def _refresh(self, view: str, tick: str) -> str:
        """Refresh a view, because production is ahead of the environment."""
        self._leases.pop(view).close()
        self.refresher.run(
            view, tick=f"{tick}/{view}", let_pass=f"{tick} promotes it", asked_by=self.who
        )
        one = self.environment.views[view]
        self._keep(self.environment.with_view(view, replace(one, published=_REFRESHED)))
        return "was refreshed: production was ahead of the environment"

    def _note_published(self, view: str, version: int) -> None:
        found = log.table_version(self.refresher.context.published_at(view))
        table = {"id": found.table_id if found else "", "version": version}
        one = replace(self.environment.views[view], published=table)
        self._keep(self.environment.with_view(view, one))

    def _keep(self, environment: Environment) -> None:
        self.environment = environment
        self.refresher.context.store.save_environment(environment)


def _version(value: Mapping[str, Any] | None) -> TableVersion:
    found = value or {}
    return TableVersion(str(found["id"]), int(found["version"]))

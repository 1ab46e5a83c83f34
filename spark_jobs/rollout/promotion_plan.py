"""Plans the promotion of an environment, or says why it is refused; writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from spark_jobs.deploy.environment_errors import EnvironmentBaseMovedError, PromotionRefusedError
from spark_jobs.deploy.environments import gold_inputs, moved, with_views
from spark_jobs.deploy.errors import NothingAppliedError
from spark_jobs.deploy.plan import Running, plan_change
from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.environments import check_gate
from spark_jobs.rollout.planning import Planned, running_now
from spark_jobs.state.environments import Environment, EnvironmentStatus
from spark_jobs.state.store import ControlStore


@dataclass(frozen=True, kw_only=True)
class PlannedPromotion:
    """The plan of a promotion.

    Attributes:
        environment: its stored record.
        planned: the deployment: the manifest in force with the environment's views.
        left: views that are not published yet, each after the views that it reads.
    """

    environment: Environment
    planned: Planned
    left: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``environment``, ``base`` (a deployment), ``views`` (those left)."""
        return {
            "environment": self.environment.name,
            "base": self.planned.plan.base,
            "views": list(self.left),
        }


def plan_promotion(
    store: ControlStore, environment: Environment, *, contract_breaks: Collection[str] = ()
) -> PlannedPromotion:
    """Compare an environment with what runs.

    Args:
        store: the control database.
        environment: its stored record.
        contract_breaks: views whose contract may be broken this once.

    Raises:
        PromotionRefusedError: it cannot be promoted in its current state.
        EnvironmentBlockedError: the gate blocks some views.
        ProblemsError: ``tidemark apply`` would refuse the change.
        EnvironmentBaseMovedError: production's definition of one of its views changed.
    """
    stored = Manifest.stored(environment.manifest)
    if stored is None:
        raise _refused(environment, "another release built it")
    running = running_now(store, stored)
    if running.deployment is None:
        raise NothingAppliedError
    if not running.whole:
        # The promotion would put in force what can be read of it.
        problem = "another release applied what runs"
        raise PromotionRefusedError(environment.name, problem, "Run `tidemark apply` first.")
    _check_state(environment, stored)
    check_gate(environment)
    if views := moved(running.manifest, environment):
        names = [f"gold.{view}" for view in views]
        raise EnvironmentBaseMovedError(environment.name, names, environment.base)
    if pinned := sorted(store.pinned_views().keys() & environment.views.keys()):
        problem = f"gold.{pinned[0]} is pinned by a rollback"
        raise PromotionRefusedError(
            environment.name, problem, f"Run `tidemark release {pinned[0]}` first."
        )
    tables = {f"gold.{view}" for view in environment.views}
    _check_unfinished(environment, running, tables)
    merged = with_views(running.manifest, stored, environment.views)
    today = datetime.now(UTC).date()
    plan = plan_change(
        running,
        merged,
        running.settings,
        costs={},
        existing={},
        contract_breaks=contract_breaks,
        today=today,
    )
    if plan.problems:
        raise ProblemsError(plan.problems)
    left = tuple(view for view, one in environment.views.items() if one.published is None)
    steps = (Step(StepKind.MANIFEST), *(Step(StepKind.PROMOTE, f"gold.{view}") for view in left))
    return PlannedPromotion(
        environment=environment,
        planned=Planned(replace(plan, steps=steps), running, merged),
        left=left,
    )


def _check_state(environment: Environment, manifest: Manifest) -> None:
    match environment.status:
        case EnvironmentStatus.PROMOTED:
            remedy = f"`tidemark env drop {environment.name}` deletes the rest of it."
            raise PromotionRefusedError(environment.name, "it was promoted already", remedy)
        case EnvironmentStatus.DROPPING:
            remedy = f"Run `tidemark env drop {environment.name}` to continue."
            raise PromotionRefusedError(environment.name, "it is being dropped", remedy)
        case _:
            pass
    if not environment.views:
        raise _refused(environment, "it holds no view")
    for view, one in environment.views.items():
        if not one.there:
            raise _refused(environment, f"gold.{view} does not exist: {one.problem or 'not built'}")
        for name in gold_inputs(manifest.gold[view]):
            above = environment.views.get(name)
            if above is not None and not _same(one.vector.get(f"gold.{name}"), above.table):
                raise _refused(environment, f"gold.{view} was built before gold.{name}")


def _check_unfinished(environment: Environment, running: Running, tables: set[str]) -> None:
    """Refuse if an unfinished apply has other open steps."""
    others = [
        step
        for step in running.open_steps
        if step.kind is not StepKind.MANIFEST
        and not (step.kind is StepKind.PROMOTE and step.subject in tables)
    ]
    if others:
        problem = f"deployment {running.unfinished} did not end: {others[0].title} is left to do"
        raise PromotionRefusedError(environment.name, problem, "Run `tidemark apply` first.")


def _same(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    return one is not None and one == other


def _refused(environment: Environment, problem: str) -> PromotionRefusedError:
    remedy = f"Run `tidemark apply --env {environment.name}`."
    return PromotionRefusedError(environment.name, problem, remedy)

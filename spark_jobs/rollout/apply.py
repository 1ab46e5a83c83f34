"""Applies a plan step by step, recording each; one apply per lake at a time."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_jobs.deploy.change import Action, Kind, Work
from spark_jobs.deploy.errors import (
    ApplyOvertakenError,
    ApplyRunningError,
    PlanOutdatedError,
)
from spark_jobs.deploy.kept_settings import kept_settings
from spark_jobs.deploy.plan import Plan
from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.settings import Settings
from spark_jobs.state.deployments import OPEN, Deployment, DeploymentStatus
from spark_jobs.state.errors import LeaseTakenError, TableLockedError
from spark_jobs.state.failpoints import failpoint
from spark_jobs.state.locks import table_lock
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import JsonObject, utc_now
from spark_jobs.storage.lake import lock_directory, remote_location, this_machine

if TYPE_CHECKING:
    from spark_jobs.rollout.planning import Planned

LOCK = "apply"
# Failpoints of crash tests: before a step, and before it is recorded.
FAILPOINTS = (
    "apply.begun",
    *(
        f"apply.{kind.name.lower()}.{moment}"
        for kind in StepKind
        # Only promotions have this step.
        if kind is not StepKind.PROMOTE
        for moment in ("begins", "ends")
    ),
    "apply.all_done",
)
# Shows what a step is waiting for.
Note = Callable[[str], None]
# Carries out a step; returns a message for the user, or None.
Carry = Callable[[Step, Deployment, Note], str | None]


@dataclass(frozen=True)
class Applied:
    """The result of an apply.

    Attributes:
        messages: of finished steps, for the user.
        failed: errors of failed steps.
    """

    deployment: str
    messages: Mapping[str, str]
    failed: Mapping[str, LakehouseError]

    def as_dict(self) -> JsonObject:
        """The messages and errors by step, for JSON; ``told`` is the messages' older name."""
        return {
            "messages": dict(self.messages),
            "told": dict(self.messages),
            "failed": {step: error.as_dict() for step, error in self.failed.items()},
        }


@contextmanager
def only_apply(settings: Settings, store: ControlStore) -> Iterator[None]:
    """Hold the lock of applies while the context lasts, and a lease if the lake has no locks.

    The owner of the lease is this machine, so that an apply continues here at once after a kill.

    Raises:
        ApplyRunningError: another apply holds it.
    """
    owner, seconds = this_machine(settings.state), settings.gold.lease_seconds
    with ExitStack() as held:
        try:
            held.enter_context(table_lock(lock_directory(settings.lake, settings.state), LOCK))
            if remote_location(settings.lake):
                held.enter_context(store.lease(LOCK, owner=owner, seconds=seconds))
        except TableLockedError as error:
            raise ApplyRunningError(error.detail) from error
        except LeaseTakenError as error:
            raise ApplyRunningError(f"It runs on {error.holder}. {error.detail}") from error
        yield


def apply(
    settings: Settings,
    store: ControlStore,
    planned: Planned,
    *,
    who: str,
    carry: Carry,
    watch: Callable[[Step], object],
) -> Applied:
    """Carry out a plan; the caller holds the lock.

    A failed build does not stop other builds. Any other failed step ends the apply, and later steps
    stay open for the next one.

    Args:
        settings: project settings.
        store: the control database.
        planned: the plan.
        who: the person who asked for it.
        carry: carries out one step.
        watch: shows a running step: a context manager that yields a ``Note``.

    Raises:
        ProblemsError: the plan has problems; nothing was done.
        PlanOutdatedError: another deployment is in force than the plan was made for.
        DeploymentOvertakenError: another machine started an apply from the same base.
        ApplyOvertakenError: another machine started one while this did not renew its lease.
    """
    if planned.plan.problems:
        raise ProblemsError(planned.plan.problems)
    deployment = begin(settings, store, planned, who=who)
    failpoint("apply.begun")
    messages: dict[str, str] = {}
    failed: dict[str, LakehouseError] = {}
    for step in map(Step.parse, deployment.open_steps):
        point = f"apply.{step.kind.name.lower()}"
        failpoint(f"{point}.begins")
        check_not_overtaken(store, deployment)
        try:
            with watch(step) as note:  # type: ignore[attr-defined]
                said = carry(step, deployment, note)
        except LakehouseError as error:
            failed[str(step)] = error
            if step.kind is StepKind.BUILD:
                continue
            break
        except BaseException:
            store.end_deployment(deployment.deployment_id, status=DeploymentStatus.FAILED)
            raise
        failpoint(f"{point}.ends")
        store.step_done(deployment.deployment_id, str(step))
        if said:
            messages[str(step)] = said
    failpoint("apply.all_done")
    status = DeploymentStatus.FAILED if failed else DeploymentStatus.APPLIED
    problem = "\n".join(error.render() for error in failed.values()) or None
    store.end_deployment(deployment.deployment_id, status=status, error=problem)
    return Applied(deployment.deployment_id, messages, failed)


def check_not_overtaken(store: ControlStore, deployment: Deployment) -> None:
    """Verify that no later deployment took over the open steps.

    Raises:
        ApplyOvertakenError: one did.
    """
    found = store.deployment(deployment.deployment_id)
    if found is not None and found.status is DeploymentStatus.SUPERSEDED:
        raise ApplyOvertakenError(deployment.deployment_id)


def settle(store: ControlStore, plan: Plan) -> None:
    """Record the end of a killed deployment that has no open steps."""
    if plan.empty and plan.unfinished is not None:
        store.end_deployment(plan.unfinished, status=DeploymentStatus.APPLIED)


def begin(settings: Settings, store: ControlStore, planned: Planned, *, who: str) -> Deployment:
    """Record the deployment with its open steps.

    Raises:
        PlanOutdatedError: another deployment is in force than the plan was made for.
        DeploymentOvertakenError: another machine started an apply from the same base.
    """
    plan = planned.plan
    current = store.deployment_in_force()
    # An apply does not change the settings of running parts.
    settings_of_parts = current.settings if current else kept_settings(settings)
    if (current.deployment_id if current else None) != plan.base:
        was, now = plan.base or "nothing", current.deployment_id if current else "nothing"
        raise PlanOutdatedError(was, now)
    newest = store.newest_deployment()
    number = newest.number + 1 if newest else 1
    name = deployment_id(number)
    deployment = Deployment(
        deployment_id=name,
        number=number,
        who=who,
        manifest=planned.project.model_copy(update={"deployment": name}).model_dump_json(),
        settings=settings_of_parts,
        plan=plan.as_dict(),
        steps={str(step): OPEN for step in plan.steps},
        kept=kept_after(plan),
    )
    store.begin_deployment(deployment)
    return deployment


def deployment_id(number: int) -> str:
    """A unique id that sorts by time."""
    return f"d{number}-{utc_now():%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"


def kept_after(plan: Plan) -> dict[str, str]:
    """Tables that are no longer declared, by name, with the time of their removal."""
    now = utc_now().isoformat(timespec="seconds")
    kept = dict(plan.kept)
    for change in plan.changes:
        name = f"bronze.{change.name}" if change.kind is Kind.SOURCE else change.name
        if change.kind in {Kind.SOURCE, Kind.SILVER, Kind.GOLD}:
            if change.action is Action.REMOVED:
                # An external table is not of this lake: there is nothing to drop.
                if Work.KEEP in change.work:
                    kept.setdefault(name, now)
            else:
                kept.pop(name, None)
    return kept

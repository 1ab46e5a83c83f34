"""Asks Spark's analyzer about the views that a plan creates or changes; nothing is changed."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from spark_jobs.deploy.plan import Plan
from spark_jobs.deploy.steps import StepKind
from spark_jobs.rollout.environments import PlannedEnvironment
from spark_jobs.rollout.planning import Planned
from spark_jobs.serving.sql.view_analysis import Analysis, Ask, analyzed
from spark_jobs.settings import Settings


def analyzed_plan(
    settings: Settings, planned: Planned, ask: Ask, *, opened: ExitStack
) -> tuple[Planned, Analysis]:
    """The plan with what Spark refuses among its problems, and what Spark said.

    Args:
        settings: of the project.
        planned: the plan.
        ask: whether to ask Spark.
        opened: stops the session at its end.
    """
    found = analyzed(settings, planned.project, ask, opened=opened, views=computed(planned.plan))
    plan = replace(planned.plan, problems=(*planned.plan.problems, *found.problems))
    return replace(planned, plan=plan), found


def analyzed_environment(
    settings: Settings, planned: PlannedEnvironment, ask: Ask, *, opened: ExitStack
) -> tuple[PlannedEnvironment, Analysis]:
    """The same for an environment, about the views that are left to build."""
    found = analyzed(settings, planned.manifest, ask, opened=opened, views=planned.builds)
    return replace(planned, problems=(*planned.problems, *found.problems)), found


def computed(plan: Plan) -> frozenset[str]:
    """The views whose SQL or inputs are new or changed, also by an unfinished deployment."""
    steps = (one for one in plan.steps if one.kind in {StepKind.BUILD, StepKind.PROMOTE})
    return frozenset(one.subject.partition(".")[2] for one in steps)

"""``tidemark apply``: makes the running system match the project's declarations."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.cli.analysis import AskSparkFirst, ask_of, print_note
from spark_jobs.cli.approval import confirmed
from spark_jobs.cli.contracts import BreakContract, without_contracts
from spark_jobs.cli.environments import EnvironmentName, apply_env
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.deploy.plan import Plan
    from spark_jobs.rollout.apply import Applied


def apply(
    context: typer.Context,
    env: EnvironmentName = None,
    break_contract: BreakContract = None,
    spark: AskSparkFirst = True,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Carry out what `tidemark plan` shows; an interrupted apply continues where it stopped."""
    from spark_jobs.rollout.analysis import analyzed_plan
    from spark_jobs.rollout.apply import apply as apply_plan
    from spark_jobs.rollout.apply import only_apply, settle
    from spark_jobs.rollout.planning import make_plan
    from spark_jobs.rollout.steps import Carrier
    from spark_jobs.serving.project import asker
    from spark_jobs.serving.report.plan_table import plan_view
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.compiled import compiled
    from spark_jobs.terminal.steps import Steps

    if env is not None:
        without_contracts(env, break_contract)
        apply_env(context, env, ask=ask_of(spark), yes=yes, as_json=as_json)
        return
    settings = load_settings(context.obj)
    project = compiled(settings)
    console = Console(highlight=False, stderr=as_json)
    with (
        ControlStore.open(settings.control_url) as store,
        only_apply(settings, store),
        ExitStack() as opened,
    ):
        allowed = break_contract or ()
        planned = make_plan(settings, store, project, contract_breaks=allowed)
        # Builds use the same session, where it is one of this process.
        planned, analysis = analyzed_plan(settings, planned, ask_of(spark), opened=opened)
        print_note(analysis)
        if not as_json:
            console.print(plan_view(planned.plan))
        if not planned.plan.steps and not planned.plan.problems:
            if planned.plan.empty:
                settle(store, planned.plan)
            else:
                console.print("Only settings differ: run tidemark stack up --restart.")
            if as_json:
                typer.echo(json.dumps({"plan": planned.plan.as_dict()}, indent=2))
            return
        if not planned.plan.problems:
            # The plan is not shown beside JSON.
            question = "" if as_json else "Apply this plan?"
            confirmed(planned.plan.asks, yes=yes, question=question)
        steps = Steps(Console(stderr=True, highlight=False))
        carrier = Carrier(settings, store, project)
        try:
            applied = apply_plan(
                settings,
                store,
                planned,
                who=asker(),
                carry=carrier.carry,
                watch=lambda step: steps.step(step.title),
            )
        finally:
            carrier.close()
    show(planned.plan, applied, as_json=as_json)
    if applied.failed:
        raise typer.Exit(1)


def show(plan: Plan, applied: Applied, *, as_json: bool) -> None:
    """Print the result, as text or JSON."""
    if as_json:
        answer = {
            "deployment": applied.deployment,
            "plan": plan.as_dict(),
            **applied.as_dict(),
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    for step, said in applied.messages.items():
        typer.echo(f"{step}: {said}")
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for error in applied.failed.values():
        errors.print(error.render(), markup=False)
    if applied.failed:
        errors.print(
            f"Deployment {applied.deployment} is not finished: run `tidemark apply` to continue."
        )
    else:
        typer.echo(f"Deployment {applied.deployment} is applied.")

"""``tidemark plan``: what applying the project would do; nothing is written."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console

from spark_jobs.cli.analysis import AskSpark, ask_of, print_note
from spark_jobs.cli.contracts import BreakContract, without_contracts
from spark_jobs.cli.environments import EnvironmentName, plan_env
from spark_jobs.settings import load_settings

# In addition to 0, nothing to do, and 1, a problem.
CHANGES = 3


def plan(
    context: typer.Context,
    env: EnvironmentName = None,
    break_contract: BreakContract = None,
    spark: AskSpark = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Show what `tidemark apply` would do; exit with 3 if there is something to do."""
    from spark_jobs.rollout.analysis import analyzed_plan
    from spark_jobs.rollout.planning import make_plan
    from spark_jobs.serving.report.plan_table import plan_view
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.compiled import compiled

    if env is not None:
        without_contracts(env, break_contract)
        if plan_env(context, env, ask=ask_of(spark), as_json=as_json):
            raise typer.Exit(CHANGES)
        return
    settings = load_settings(context.obj)
    project = compiled(settings)
    with ControlStore.open(settings.control_url) as store:
        allowed = break_contract or ()
        planned = make_plan(settings, store, project, contract_breaks=allowed)
    with ExitStack() as opened:
        planned, analysis = analyzed_plan(settings, planned, ask_of(spark), opened=opened)
    found = planned.plan
    print_note(analysis)
    if as_json:
        typer.echo(json.dumps({**found.as_dict(), "spark": analysis.as_dict()}, indent=2))
    else:
        Console(highlight=False).print(plan_view(found))
        errors = Console(stderr=True, highlight=False, soft_wrap=True)
        for problem in found.problems:
            errors.print(problem.render(), markup=False)
    if found.problems:
        raise typer.Exit(1)
    if not found.empty:
        raise typer.Exit(CHANGES)

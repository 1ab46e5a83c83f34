"""``tidemark plan --env``, ``apply --env`` and ``tidemark env``: views beside production."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.cli.analysis import print_note
from spark_jobs.cli.approval import confirmed
from spark_jobs.cli.contracts import BreakContract
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.rollout.apply import Applied
    from spark_jobs.rollout.environments import PlannedEnvironment
    from spark_jobs.serving.sql.view_analysis import Ask
    from spark_jobs.state.environments import Environment

app = typer.Typer(
    no_args_is_help=True, help="Virtual environments: changed gold views next to production."
)
EnvironmentName = Annotated[
    str | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="A virtual environment: changed gold views next to production.",
    ),
]
_Name = Annotated[str, typer.Argument(help="The environment.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def plan_env(context: typer.Context, name: str, *, ask: Ask, as_json: bool) -> bool:
    """Show what an environment would hold and what is left to build; True: something is."""
    from spark_jobs.rollout.analysis import analyzed_environment
    from spark_jobs.rollout.environments import plan_environment
    from spark_jobs.serving.project import asker
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.compiled import compiled

    settings = load_settings(context.obj)
    project = compiled(settings)
    with ControlStore.open(settings.control_url) as store:
        found = plan_environment(settings, store, project, name, who=asker())
    with ExitStack() as opened:
        found, analysis = analyzed_environment(settings, found, ask, opened=opened)
    print_note(analysis)
    if as_json:
        typer.echo(json.dumps({**found.as_dict(), "spark": analysis.as_dict()}, indent=2))
    else:
        _show(found, Console(highlight=False))
        errors = Console(stderr=True, highlight=False, soft_wrap=True)
        for problem in found.problems:
            errors.print(problem.render(), markup=False)
    if found.problems:
        raise typer.Exit(1)
    return not found.empty


def apply_env(context: typer.Context, name: str, *, ask: Ask, yes: bool, as_json: bool) -> None:
    """Build what is left to build of an environment."""
    from spark_jobs.deploy.environments import checked_name
    from spark_jobs.gold.environment.surroundings import only_writer
    from spark_jobs.rollout.analysis import analyzed_environment
    from spark_jobs.rollout.environments import (
        apply_environment,
        plan_environment,
        surroundings_of,
    )
    from spark_jobs.serving.project import asker
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.compiled import compiled
    from spark_jobs.terminal.steps import Steps

    settings = load_settings(context.obj)
    project = compiled(settings)
    console = Console(highlight=False, stderr=as_json)
    with (
        ControlStore.open(settings.control_url) as store,
        only_writer(settings, checked_name(name)),
        ExitStack() as opened,
    ):
        planned = plan_environment(settings, store, project, name, who=asker())
        planned, analysis = analyzed_environment(settings, planned, ask, opened=opened)
        print_note(analysis)
        if not as_json:
            _show(planned, console)
        if not planned.problems and planned.environment.views:
            confirmed([f"build gold.{view}" for view in planned.builds], yes=yes)
        steps = Steps(Console(stderr=True, highlight=False))
        if not planned.problems and not planned.environment.views and planned.before is None:
            if as_json:
                typer.echo(json.dumps(planned.as_dict(), indent=2))
            return
        with closing(surroundings_of(settings, store, planned)) as surroundings:
            found = apply_environment(surroundings, planned, watch=steps.step)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    elif not planned.empty:
        typer.echo(
            f"Environment {name} is built. Look at it: "
            f'tidemark query --env {name} "SELECT …"; publish it: tidemark env promote {name}'
        )


@app.command("list")
def list_environments(context: typer.Context, as_json: _Json = False) -> None:
    """List the environments, their views and their progress."""
    from spark_jobs.serving.project import open_project
    from spark_jobs.serving.report.environment_tables import environments_table

    with open_project(context) as project:
        found = project.store.environments()
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2))
    elif found:
        Console(highlight=False).print(environments_table(found))
    else:
        typer.echo("There is no environment; `tidemark apply --env NAME` builds one.")


@app.command()
def promote(
    context: typer.Context,
    name: _Name,
    break_contract: BreakContract = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: _Json = False,
) -> None:
    """Publish the views of an environment and activate its SQL; nothing is computed."""
    from spark_jobs.gold.environment.surroundings import known_environment, only_writer
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.rollout.apply import only_apply
    from spark_jobs.rollout.promotion import Promoter
    from spark_jobs.rollout.promotion_plan import plan_promotion
    from spark_jobs.serving.project import asker
    from spark_jobs.state.store import ControlStore
    from spark_jobs.terminal.steps import Steps

    settings = load_settings(context.obj)
    steps = Steps(Console(stderr=True, highlight=False))
    with ControlStore.open(settings.control_url) as store:
        known_environment(store, name)
        with only_apply(settings, store), only_writer(settings, name):
            found = plan_promotion(
                store, known_environment(store, name), contract_breaks=break_contract or ()
            )
            confirmed([f"publish gold.{view} from {name}" for view in found.left], yes=yes)
            refresher = Refresher(settings, found.planned.project, store)
            promoter = Promoter(refresher, found, asker())
            with closing(refresher.context):
                applied = promoter.run(watch=lambda step: steps.step(step.title))
    if as_json:
        answer = {
            **promoter.environment.as_dict(),
            **applied.as_dict(),
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        _show_promoted(promoter.environment, applied)
    if applied.failed:
        raise typer.Exit(1)


def _show_promoted(environment: Environment, applied: Applied) -> None:
    for view, one in environment.views.items():
        if one.published:
            typer.echo(f"gold.{view} has its rows, as version {one.published['version']}.")
    for step, said in applied.messages.items():
        typer.echo(f"{step.removeprefix('promote ')} {said}.")
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for error in applied.failed.values():
        errors.print(error.render(), markup=False)
    if applied.failed:
        errors.print(f"Run `tidemark env promote {environment.name}` to continue.")
    else:
        typer.echo(
            f"Environment {environment.name} is promoted as deployment {applied.deployment}; the "
            "next refreshes take up what came since it was built."
        )


@app.command()
def drop(
    context: typer.Context,
    name: _Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete the tables of an environment; promoted views stay in production."""
    from spark_jobs.gold.environment.surroundings import known_environment, only_writer
    from spark_jobs.rollout.environments import drop_environment
    from spark_jobs.state.store import ControlStore

    settings = load_settings(context.obj)
    with ControlStore.open(settings.control_url) as store:
        known_environment(store, name)
        confirmed([f"delete environment {name}"], yes=yes)
        with only_writer(settings, name):
            drop_environment(settings, store, known_environment(store, name))
    typer.echo(f"Environment {name} is deleted.")


def _show(planned: PlannedEnvironment, console: Console) -> None:
    from spark_jobs.serving.report.environment_tables import planned_table

    if planned.environment.views or planned.gone:
        console.print(planned_table(planned.as_dict()))
    console.print(planned.summary)

"""``tidemark diff``: what changed SQL does to the rows, before anything is published."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.settings import Settings

# As for `tidemark plan`: there are differences.
DIFFERENT = 3


def diff(
    context: typer.Context,
    views: Annotated[
        list[str] | None,
        typer.Argument(help="Gold views and their downstream views. Default: all changed views."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="REF", help="A commit, branch or tag. Default: the applied project."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")
    ] = False,
) -> None:
    """Compute changed views and their downstream views before and after, and compare the rows."""
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.rollout.preview import Preview, changed_views
    from spark_jobs.serving.report.diff_text import diff_markdown
    from spark_jobs.state.store import ControlStore
    from spark_jobs.state.types import utc_now
    from spark_jobs.storage.compiled import compiled
    from spark_jobs.terminal.steps import Steps

    settings = load_settings(context.obj)
    project = compiled(settings)
    before, name = _before(settings, against)
    chosen = changed_views(before, project, views)
    steps = Steps(Console(stderr=True, highlight=False))
    with ControlStore.open(settings.control_url) as store:
        gold = GoldContext(settings, project, store)
        preview = Preview(gold, before, utc_now())
        with closing(gold), steps.step(f"compute {len(chosen)} views twice") as note:
            found = []
            for one in preview.differences(chosen):
                note(f"{one.view} is compared")
                found.append(one)
        rows = [one.as_dict() for one in found]
    if as_json:
        answer = {"against": name, "versions": preview.versions, "views": rows}
        typer.echo(json.dumps(answer, indent=2))
    else:
        text = diff_markdown(rows, against=name, versions=preview.versions)
        if markdown:
            typer.echo(text, nl=False)
        else:
            Console(highlight=False).print(Markdown(text))
    if not all(one.same for one in found):
        raise typer.Exit(DIFFERENT)


def _before(settings: Settings, ref: str | None) -> tuple[Manifest, str]:
    """The manifest that the project is compared with, and its name.

    Raises:
        NothingAppliedError: no deployment was applied, and no commit is given.
    """
    from spark_jobs.deploy.errors import NothingAppliedError
    from spark_jobs.serving.report.lint_reference import manifest_at
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.in_force import manifest_of

    if ref is not None:
        found, _ = manifest_at(settings, ref)
        return found, ref
    with ControlStore.open(settings.control_url) as store:
        deployment = store.deployment_in_force()
    applied = manifest_of(deployment)
    if deployment is None or applied is None:
        raise NothingAppliedError
    return applied, deployment.deployment_id

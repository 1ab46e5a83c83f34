"""``tidemark diff``: what changed SQL does to the rows, before anything is published."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markdown import Markdown

from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.settings import Settings
    from spark_jobs.silver.repair.declared import DeclaredTable
    from spark_jobs.state.store import ControlStore
    from spark_jobs.terminal.steps import Steps

# As for `tidemark plan`: there are differences.
DIFFERENT = 3
_SILVER = "silver."
_LIVE = "a silver table is compared with its rows as they are, not with a commit; leave this out"


def diff(
    context: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(
            help="Gold views or silver tables, each with its downstream views. Default: all "
            "changed views."
        ),
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
    """Compute changed tables and their downstream views before and after, and compare the rows."""
    from spark_jobs.deploy.difference import changed_silver
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.rollout.preview import Preview, changed_views
    from spark_jobs.serving.report.diff_text import diff_markdown
    from spark_jobs.state.store import ControlStore
    from spark_jobs.state.types import utc_now
    from spark_jobs.storage.compiled import compiled
    from spark_jobs.terminal.steps import Steps

    silver = [name.removeprefix(_SILVER) for name in tables or () if name.startswith(_SILVER)]
    gold = [name for name in tables or () if not name.startswith(_SILVER)] if tables else None
    if silver and against is not None:
        raise typer.BadParameter(_LIVE, param_hint="--against")
    settings = load_settings(context.obj)
    project = compiled(settings)
    before, name = _before(settings, against)
    # Unknown names are refused before tables are built.
    changed_views(before, project, gold)
    steps = Steps(Console(stderr=True, highlight=False))
    with ControlStore.open(settings.control_url) as store, ExitStack() as kept:
        declared = {}
        if silver:
            declared = kept.enter_context(_built(settings, store, (before, project), silver, steps))
        view = kept.enter_context(closing(GoldContext(settings, project, store)))
        preview = Preview(view, before, utc_now(), declared)
        found = list(preview.tables())
        moved = {one.table: one.noticed for one in found if not one.same}
        chosen = changed_views(before, project, gold, moved=moved)
        with steps.step(f"compute {len(chosen)} views twice") as note:
            for one in preview.differences(chosen):
                note(f"{one.table} is compared")
                found.append(one)
        rows = [one.as_dict() for one in found]
    edited = sorted(f"{_SILVER}{one}" for one in changed_silver(before, project) - {*silver})
    if as_json:
        answer = {
            "against": name,
            "versions": preview.versions,
            "tables": [one for one in rows if "view" not in one],
            "views": [one for one in rows if "view" in one],
        }
        typer.echo(json.dumps(answer, indent=2))
    else:
        text = diff_markdown(rows, against=name, versions=preview.versions, edited=edited)
        if markdown:
            typer.echo(text, nl=False)
        else:
            Console(highlight=False).print(Markdown(text))
    if not all(one.same for one in found):
        raise typer.Exit(DIFFERENT)


@contextmanager
def _built(
    settings: Settings,
    store: ControlStore,
    sides: tuple[Manifest, Manifest],
    names: Sequence[str],
    steps: Steps,
) -> Iterator[dict[str, DeclaredTable | None]]:
    """Silver tables as the project makes them of their records, while the block runs."""
    from spark_jobs.rollout.silver_copies import SilverCopies

    copies = SilverCopies(settings, store, *sides)
    copies.check(names)
    with ExitStack() as kept:
        tables = ", ".join(f"{_SILVER}{one}" for one in names)
        with steps.step(f"build {tables} from bronze") as note:
            built = kept.enter_context(copies.built(names, note=note))
        yield built


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

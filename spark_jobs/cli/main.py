"""The entry point: options that every verb shares, and how errors reach the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spark_jobs.cli import (
    cases,
    demo,
    docs,
    endpoint,
    explain,
    forget,
    graph,
    impact,
    lint,
    load,
    maintain,
    manifest,
    new,
    page,
    quality,
    quarantine,
    query,
    rebuild,
    reconcile,
    refresh,
    replay,
    rollback,
    shell,
    sink,
    source,
    stack,
    status,
    stream,
    upgrade,
    validate,
    verify,
)
from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings, load_settings

app = typer.Typer(
    name="tidemark",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Gold views that are plain SQL, kept up to date and provably equal to their SQL.",
)
app.command()(validate.validate)
app.command()(graph.graph)
app.command()(lint.lint)
app.command("compile")(manifest.compile_manifest)
app.add_typer(docs.app, name="docs")
app.add_typer(new.app, name="new")
app.add_typer(stack.app, name="stack")
app.add_typer(stream.app, name="stream")
app.command("test")(cases.run_cases)
app.command()(refresh.refresh)
app.add_typer(replay.app, name="replay")
app.command()(rollback.rollback)
app.command()(rollback.release)
app.command()(explain.explain)
app.command()(impact.impact)
app.command()(verify.verify)
app.command()(status.status)
app.command()(page.page)
app.command()(quality.quality)
app.command()(query.query)
app.command()(shell.shell)
app.command()(endpoint.endpoint)
app.command()(reconcile.reconcile)
app.command()(maintain.maintain)
app.command()(upgrade.upgrade)
app.add_typer(quarantine.app, name="quarantine")
app.command()(rebuild.rebuild)
app.command()(forget.forget)
app.add_typer(source.app, name="source")
app.add_typer(sink.app, name="sink")
app.command()(load.load)
app.command()(demo.demo)


@app.callback()
def project_options(
    context: typer.Context,
    project: Annotated[
        Path | None,
        typer.Option(
            envvar="TIDEMARK_PROJECT",
            help="The project directory, which holds sources/ and sql/. Default: this directory.",
        ),
    ] = None,
) -> None:
    """Options that come before the verb."""
    context.obj = project


def settings_of(context: typer.Context) -> Settings:
    """The settings of the project that ``--project`` names.

    Raises:
        ProblemsError: settings that are unknown or do not fit.
    """
    return load_settings(context.obj)


def run() -> None:
    """Run the command line; a known error is shown without a traceback and ends with status 1."""
    try:
        app()
    except LakehouseError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(error.render(), markup=False)
        sys.exit(1)

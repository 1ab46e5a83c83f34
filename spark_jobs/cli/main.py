"""The entry point: common options of all commands, and the output of errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from spark_jobs.cli import (
    apply,
    cases,
    demo,
    diff,
    docs,
    drop,
    endpoint,
    environments,
    explain,
    fmt,
    forget,
    graph,
    impact,
    lint,
    load,
    maintain,
    manifest,
    new,
    page,
    plan,
    quality,
    quarantine,
    query,
    rebuild,
    reconcile,
    refresh,
    replay,
    rollback,
    schema,
    seed,
    shell,
    sink,
    source,
    stack,
    status,
    stream,
    upgrade,
    validate,
    verify,
    watch,
)
from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.caller import report_error
from spark_jobs.terminal.crash import INTERNAL_ERROR, discard_output, output_is_gone, unforeseen

# The exit status that a shell reports after SIGINT.
INTERRUPTED = 130


class _Verbs(TyperGroup):
    """The commands; distinguishes a closed output pipe from a broken connection.

    Typer exits silently for both, which is right only for the closed pipe.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            if output_is_gone():
                raise
            raise ConnectionError("a connection was closed by its other side") from error


app = typer.Typer(
    name="tidemark",
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="A lakehouse whose gold tables are plain SQL, refreshed incrementally and verified.",
)
app.command()(validate.validate)
app.command()(watch.watch)
app.command()(schema.schema)
app.command()(fmt.fmt)
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
app.command()(plan.plan)
app.command()(apply.apply)
app.command()(diff.diff)
app.command()(drop.drop)
app.add_typer(environments.app, name="env")
app.command()(explain.explain)
app.command()(impact.impact)
app.command()(verify.verify)
app.command()(status.status)
app.command()(page.page)
app.command()(quality.quality)
app.command()(query.query)
app.command()(shell.shell)
app.add_typer(endpoint.app, name="endpoint")
app.command()(reconcile.reconcile)
app.command()(maintain.maintain)
app.command()(upgrade.upgrade)
app.add_typer(quarantine.app, name="quarantine")
app.command()(rebuild.rebuild)
app.command()(forget.forget)
app.add_typer(source.app, name="source")
app.add_typer(sink.app, name="sink")
app.command()(seed.seed)
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
    """Options before the command."""
    context.obj = project


def settings_of(context: typer.Context) -> Settings:
    """The settings of the project that ``--project`` names.

    Raises:
        ProblemsError: settings that are unknown or do not fit.
    """
    return load_settings(context.obj)


def run() -> None:
    """Run the command line, and exit.

    Exit status: 0, or the command's own; 1: a reported problem or a closed output pipe; 2: a wrong
    command line; 70: an unexpected error, whose details are in a file; 130: an interruption.
    """
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        code = 1
    sys.exit(code)


def _run() -> int | str | None:
    try:
        app()
    except SystemExit as end:
        return end.code
    except LakehouseError as error:
        _show(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place that can report it
        _show(unforeseen(error, sys.argv[1:]))
        return INTERNAL_ERROR
    return 1


def _show(error: LakehouseError) -> None:
    report_error(error)
    Console(stderr=True, highlight=False, soft_wrap=True).print(error.render(), markup=False)

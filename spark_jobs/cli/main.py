"""The entry point: common options of all commands, and the output of errors."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from typer.core import TyperGroup

from spark_jobs.cli.commands import Commands
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.settings import Settings, load_settings
from spark_jobs.terminal.caller import report_error
from spark_jobs.terminal.crash import (
    INTERNAL_ERROR,
    discard_output,
    foreseen,
    open_streams,
    output_is_gone,
    unforeseen,
)
from spark_jobs.terminal.leave import Leaving

# The exit status that a shell reports after SIGINT.
INTERRUPTED = 130


class _Verbs(TyperGroup):
    """The commands; distinguishes a closed output pipe from a broken connection.

    Typer exits silently for both, which is right only for the closed pipe.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast(Any, Commands())

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            # The library that checks a value of an enumeration puts this before its sentence.
            error.message = error.message.replace("Value error, ", "", 1)
            raise
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


def _print_release(asked: bool) -> None:
    if asked:
        typer.echo(f"tidemark {version('tidemark')}")
        raise typer.Exit


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
    release: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the release and exit.", is_eager=True, callback=_print_release
        ),
    ] = False,
) -> None:
    """Options before the command."""
    del release
    if project is not None and not project.is_dir():
        raise typer.BadParameter(f"there is no directory {str(project)!r}", param_hint="--project")
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
    open_streams()
    leaving = Leaving()
    leaving.register()
    code = finished()
    leaving.status = code if isinstance(code, int) else int(code is not None)
    sys.exit(code)


def finished() -> int | str | None:
    """Run the command line; returns what ``sys.exit`` takes."""
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        discard_output()
        return 1
    except OSError as error:
        # Output that could not be written until now.
        discard_output()
        return _report(error)
    return code


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
        return _report(error)
    return 1


def _report(error: Exception) -> int:
    problem = foreseen(error)
    _show(problem or unforeseen(error, sys.argv[1:]))
    return 1 if problem else INTERNAL_ERROR


def _show(error: LakehouseError) -> None:
    report_error(error)
    Console(stderr=True, highlight=False, soft_wrap=True).print(error.render(), markup=False)
    if "--json" in takewhile(lambda word: word != "--", sys.argv[1:]):
        _show_json(error)


def _show_json(error: LakehouseError) -> None:
    """Print an error for programs; a command that it ended has printed no JSON of its own."""
    problems = error.problems if isinstance(error, ProblemsError) else [error]
    answer = json.dumps({"problems": [problem.as_dict() for problem in problems]}, indent=2)
    try:
        typer.echo(answer)
    except OSError:
        # The reader has ended or the disk is full; the exit status is that of the error.
        discard_output()

"""``tidemark stack``: commands for the local stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from spark_jobs.settings import Settings, load_settings

app = typer.Typer(
    no_args_is_help=True,
    help="The local stack: Kafka, Connect, PostgreSQL, Spark, the streams and Airflow.",
)

Parts = Annotated[
    str, typer.Option(help="Only these parts, separated by commas. Default: all of them.")
]


def settings_of(context: typer.Context) -> Settings:
    """The settings of the project that the command line names."""
    return load_settings(context.obj)


@app.command()
def up(
    context: typer.Context,
    parts: Parts = "",
    restart: Annotated[
        bool, typer.Option("--restart", help="Restart parts with changed settings without asking.")
    ] = False,
) -> None:
    """Start the stack and wait until every part is ready."""
    from spark_jobs.stack.errors import RestartNeededError
    from spark_jobs.stack.stack import Stack
    from spark_jobs.stack.start_display import show_started, showing_progress

    settings = settings_of(context)
    console = Console(highlight=False)
    stack, chosen = Stack(settings), split(parts)
    try:
        with showing_progress(console) as report:
            started = stack.up(report, parts=chosen, restart=restart)
    except RestartNeededError as needed:
        if not sys.stdin.isatty():
            raise
        console.print(f"{needed.primary}.", markup=False)
        if not typer.confirm("Stop all parts and start them with the new settings?"):
            raise typer.Exit(1) from needed
        with showing_progress(console) as report:
            started = stack.up(report, parts=chosen, restart=True)
    show_started(console, settings, started)


@app.command()
def restart(
    context: typer.Context,
    parts: Annotated[list[str], typer.Argument(help="The parts, for instance streams.")],
) -> None:
    """Stop and start some parts; the others keep running."""
    from spark_jobs.stack.stack import Stack
    from spark_jobs.stack.start_display import show_started, showing_progress

    settings = settings_of(context)
    console = Console(highlight=False)
    with showing_progress(console) as report:
        started = Stack(settings).restart(report, parts=parts)
    show_started(console, settings, started)


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def shell(
    context: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(help="The command to run. Default: your shell.")
    ] = None,
) -> None:
    """Open a shell in which `tidemark` and `airflow` work on this stack."""
    from spark_jobs.stack.airflow_config import airflow_environment, airflow_home
    from spark_jobs.stack.environment import stack_environment
    from spark_jobs.stack.errors import StackNotPreparedError

    settings = settings_of(context)
    config = airflow_home(settings) / "airflow.cfg"
    if not config.exists():
        raise StackNotPreparedError(config)
    words = command or [os.environ.get("SHELL") or "/bin/sh"]
    own = {**stack_environment(settings), **airflow_environment(settings)}
    environment = {**os.environ, **own}
    program = shutil.which(words[0], path=environment["PATH"])
    if program is None:
        raise typer.BadParameter(f"there is no program {words[0]!r}")
    os.execve(program, words, environment)  # noqa: S606 - no shell is wanted


@app.command()
def down(context: typer.Context) -> None:
    """Stop the stack and everything that it started."""
    from spark_jobs.stack.stack import Stack

    console = Console(highlight=False)
    with console.status("stopping"):
        ran = Stack(settings_of(context)).down()
    console.print("The stack is down." if ran else "The stack was not up.")


@app.command()
def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show the state of each part; exit with 1 unless all are ready."""
    from spark_jobs.stack.stack import Stack

    statuses = Stack(settings_of(context)).status()
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in statuses], indent=2))
    else:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("part", "state", "ready", "pid", "uptime", "port", "restarts"):
            table.add_column(heading, no_wrap=True)
        for one in statuses:
            table.add_row(
                one.part,
                one.state,
                "yes" if one.ready else "no",
                str(one.pid or ""),
                "" if one.uptime_seconds is None else str(timedelta(seconds=one.uptime_seconds)),
                " ".join(map(str, one.ports.values())),
                str(one.restarts or ""),
            )
        console = Console(highlight=False)
        console.print(table)
        for one in statuses:
            if one.lacks:
                console.print(f"{one.part} {one.lacks}", markup=False, soft_wrap=True)
    if not all(one.ready for one in statuses):
        raise typer.Exit(1)


@app.command()
def logs(
    context: typer.Context,
    part: Annotated[str, typer.Argument(help="The part. Default: all.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the logs.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Number of lines per log.")] = 40,
) -> None:
    """Show the last lines of the logs."""
    from spark_jobs.stack.catalog import check_part_names
    from spark_jobs.stack.stack import Stack

    stack = Stack(settings_of(context))
    everything = [one.name for one in stack.parts]
    names = check_part_names(stack.steps, [part] if part else everything)
    files = [log for log in map(stack.supervisor.part_log, names) if log.exists()]
    if not files:
        typer.echo("There are no logs yet.")
        return
    options = ["-n", str(lines), *(["-F"] if follow else [])]
    subprocess.run(["tail", *options, "--", *map(str, files)], check=False)


def split(parts: str) -> list[str]:
    """The names in a comma-separated list."""
    return [name.strip() for name in parts.split(",") if name.strip()]

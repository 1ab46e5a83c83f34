"""``tidemark stack``: the local stack's verbs."""

from __future__ import annotations

import json
import subprocess
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
def up(context: typer.Context, parts: Parts = "") -> None:
    """Start the stack and wait until every part is ready."""
    from spark_jobs.cli.stack_progress import show_started, showing_progress
    from spark_jobs.local.stack import Stack

    settings = settings_of(context)
    console = Console(highlight=False)
    with showing_progress(console) as report:
        started = Stack(settings).up(report, parts=split(parts))
    show_started(console, settings, started)


@app.command()
def down(context: typer.Context) -> None:
    """Stop the stack and everything that it started."""
    from spark_jobs.local.stack import Stack

    console = Console(highlight=False)
    with console.status("stopping"):
        ran = Stack(settings_of(context)).down()
    console.print("The stack is down." if ran else "The stack was not up.")


@app.command()
def status(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show which part runs and serves; ends with status 1 unless all of them do."""
    from spark_jobs.local.stack import Stack

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
    part: Annotated[str, typer.Argument(help="The part; all of them by default.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
    lines: Annotated[int, typer.Option("--lines", "-n", help="Lines of each log.")] = 40,
) -> None:
    """Show the end of the parts' logs."""
    from spark_jobs.local.catalog import check_part_names
    from spark_jobs.local.stack import Stack

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
    """The names in a list separated by commas."""
    return [name.strip() for name in parts.split(",") if name.strip()]

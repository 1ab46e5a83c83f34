"""``tidemark rebuild``: rebuilds a silver table from bronze, and corrects the differences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from spark_jobs.serving.project import OpenProject, asker, open_project
from spark_jobs.terminal.steps import Steps

if TYPE_CHECKING:
    from spark_jobs.planning.request import Why
    from spark_jobs.silver.repair.comparison import Rebuilt


def rebuild(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="A silver table.")],
    reason: Annotated[
        str, typer.Option(help="The reason, at least 10 characters; it is recorded.")
    ] = "",
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Run it, or only show the differences.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare silver table TABLE with its records in bronze; with --run, correct it."""
    from spark_jobs.planning.request import why

    because = why(reason) if run else None
    with open_project(context) as project:
        found = rebuilt(project, table.removeprefix("silver."), because)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    print_result(found, dry_run=not run)


def rebuilt(project: OpenProject, name: str, because: Why | None) -> Rebuilt:
    """Rebuild a silver table in a Spark session of this process.

    Args:
        project: the open project.
        name: of the silver table.
        because: why; None for a dry run.

    Raises:
        SilverTableUnknownError: there is no such silver table.
        TableMissingError: it was never written.
        TableLockedError: another rebuild of it runs on this machine.
    """
    from spark_jobs.silver.errors import SilverTableUnknownError
    from spark_jobs.silver.flow import SilverFlow
    from spark_jobs.state.locks import table_lock
    from spark_jobs.storage.lake import lock_directory
    from spark_jobs.storage.log import existing_table
    from spark_jobs.storage.session import command_session

    entry = project.manifest.silver.get(name)
    if entry is None:
        raise SilverTableUnknownError(name, sorted(project.manifest.silver))
    settings = project.settings
    flow = SilverFlow(project.manifest.sources[entry.source], entry, settings, project.store)
    # Before Spark starts, which takes seconds.
    existing_table(flow.tables.table)
    with (
        table_lock(lock_directory(settings.lake, settings.state), f"rebuild.{name}"),
        command_session(settings, "tidemark rebuild") as spark,
        Steps(Console(stderr=True)).step(f"rebuild silver.{name}"),
    ):
        rebuilder = flow.rebuilder(spark)
        if because is None:
            return rebuilder.preview()
        return rebuilder.run(by=asker(), reason=because.reason)


def print_result(found: Rebuilt, *, dry_run: bool) -> None:
    """Print the differences, and what was done about them."""
    table = Table(title=f"silver.{found.table}", title_justify="left", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    outcomes = {f"records {name}": number for name, number in found.outcomes.items() if number}
    numbers = {
        **outcomes,
        "rows": found.rows,
        "rows to delete": found.leave,
        "rows to insert": found.enter,
        "records that are rejected now": found.rejected,
        "deletions or changes remembered wrongly": found.remembered,
    }
    for name, number in numbers.items():
        table.add_row(name, f"{number:,}")
    Console().print(table)
    for what, row in found.examples:
        typer.echo(f"{what}: {json.dumps(row, ensure_ascii=False)}")
    if found.right:
        typer.echo("The table equals its records in bronze.")
    elif dry_run:
        typer.echo("A dry run: nothing was written. --run --reason TEXT does it.")
    elif found.version is not None:
        typer.echo(f"The table equals its records in bronze, as of version {found.version}.")
    else:
        typer.echo("The table's rows were correct; its stored keys and counts are corrected.")

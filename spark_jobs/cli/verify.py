"""``tidemark verify``: published gold tables against their SQL at the recorded versions."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from spark_jobs.cli.completion import Views
from spark_jobs.errors import LakehouseError
from spark_jobs.names import passed_keys
from spark_jobs.serving.project import OpenProject, chosen_views, open_project
from spark_jobs.terminal.console import NO_VIEW, wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.gold.verify.published import Verification

# Findings of tables that are equal; all others are red.
_STYLES = {"EQUAL": "", "EQUAL_WITHIN_TOLERANCE": "yellow"}

Result = tuple[str, "Verification | LakehouseError"]


def verify(
    context: typer.Context,
    views: Views = None,
    all_views: Annotated[bool, typer.Option("--all", help="Every gold view.")] = False,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="For large tables, compare a sample, a different one each time."
        ),
    ] = False,
    threads: Annotated[
        int, typer.Option(min=1, max=64, help="Views that are compared at the same time.")
    ] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Compare gold tables with their SQL, as multisets; exit with 1 if any differs."""
    with open_project(context) as project:
        chosen = chosen_views(project, views, everything=all_views)
        # Without a view, Spark need not start.
        results = _verify_all(project, chosen, sample=sample, threads=threads) if chosen else []
    if as_json:
        typer.echo(json.dumps([_as_dict(*result) for result in results], indent=2))
    else:
        console = wide_console()
        if results or all_views:
            console.print(findings_table(results) if results else NO_VIEW)
        for view, found in results:
            if not isinstance(found, LakehouseError) and found.examples:
                console.print(examples_table(view, found))
    if not all(not isinstance(found, LakehouseError) and found.passed for _, found in results):
        raise typer.Exit(1)


def _verify_all(
    project: OpenProject, views: list[str], *, sample: bool, threads: int
) -> list[Result]:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.verify.sampling import any_buckets
    from spark_jobs.gold.verify.several import verify_each

    context = GoldContext(project.settings, project.manifest, project.store)
    found: dict[str, Verification | LakehouseError] = {}
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with closing(context), progress:
        task = progress.add_task("verify", total=len(views))
        each = verify_each(
            context,
            views,
            threads=threads,
            buckets=any_buckets if sample else None,
            begins=lambda view: progress.update(task, description=f"verify {view}"),
        )
        for view, result in each:
            found[view] = result
            progress.advance(task)
    return [(view, found[view]) for view in views]


def findings_table(results: list[Result]) -> Table:
    """One row per view."""
    table = FittedTable()
    for name in ("view", "finding", "detail", "versions"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "seconds"):
        table.add_column(name, justify="right")
    for view, found in results:
        if isinstance(found, LakehouseError):
            table.add_row(view, found.condition, Text(found.primary), "", "", "", style="red")
            continue
        table.add_row(
            view,
            found.finding.value,
            Text(found.detail),
            f"gold.{view}@{found.version} = {found.vector}",
            "" if found.rows is None else f"{found.rows:,}",
            f"{found.seconds:.2f}",
            style=_STYLES.get(found.finding.value, "red"),
        )
    return table


def examples_table(view: str, found: Verification) -> Table:
    """Some of the rows that differ: + is only in the table, - only in the result of its SQL."""
    table = FittedTable(title=f"gold.{view}: rows that differ", numbered=True)
    names = [name for name in found.examples[0] if name]
    table.add_column("±")
    for name in names:
        table.add_column(Text(name))
    for example in found.examples:
        values = ["NULL" if example[name] is None else str(example[name]) for name in names]
        table.add_row(str(example[""]), *map(Text, values))
    return table


def _as_dict(view: str, found: Verification | LakehouseError) -> dict[str, Any]:
    if isinstance(found, LakehouseError):
        return {
            "view": view,
            **passed_keys(passed=False),
            "finding": found.condition,
            "error": found.as_dict(),
        }
    return found.as_dict()

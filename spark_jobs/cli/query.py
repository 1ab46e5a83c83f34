"""``tidemark query``: one SELECT over the lake, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from spark_jobs.cli.output_format import OutputFormat
from spark_jobs.cli.project import open_project

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.names import TableName


def query(
    context: typer.Context,
    sql: Annotated[
        str,
        typer.Argument(help='One SELECT; tables are named layer.name. "-" reads it from stdin.'),
    ],
    form: Annotated[
        OutputFormat, typer.Option("--format", "-f", help="How to write the rows.")
    ] = OutputFormat.TABLE,
    limit: Annotated[int, typer.Option(min=0, help="Rows at most; 0 for all of them.")] = 1000,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.", dir_okay=False)
    ] = None,
    show_sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL that Spark would run, and end.")
    ] = False,
) -> None:
    """Run one SELECT over bronze, silver and gold tables; every table at its newest version."""
    from spark_jobs.cli.query_output import write_rows
    from spark_jobs.storage.lake import Lake, TableLocations
    from spark_jobs.storage.query import pinned_query, run_query
    from spark_jobs.storage.session import open_session

    if form is OutputFormat.PARQUET and output is None and not show_sql:
        raise typer.BadParameter("parquet is written to a file: pass --output FILE")
    text = typer.get_text_stream("stdin").read() if sql == "-" else sql
    with open_project(context) as project:
        settings, manifest = project.settings, project.manifest
    locations = TableLocations(Lake(settings.lake), manifest)
    pinned = pinned_query(text, locations, known=declared_tables(manifest))
    if show_sql:
        typer.echo(pinned)
        return
    messages = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        task = progress.add_task("start Spark", total=None)
        spark = open_session(settings)
        progress.update(task, description="query")
        result = run_query(spark, pinned, limit=limit)
    write_rows(result.rows, form, output=output)
    if result.more:
        messages.print(f"The first {limit:,} rows; there are more: raise --limit, or 0 for all.")


def declared_tables(manifest: Manifest) -> set[TableName]:
    """Every table that SQL can name."""
    return {
        *(entry.table_name for entry in manifest.sources.values()),
        *(entry.table_name for entry in manifest.silver.values()),
        *(entry.table_name for entry in manifest.gold.values()),
    }

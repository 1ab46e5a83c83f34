"""``tidemark query``: one SELECT over the lake, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from spark_jobs.cli.environments import EnvironmentName
from spark_jobs.serving.sql.output_format import OutputFormat
from spark_jobs.serving.sql.session import QuerySession
from spark_jobs.settings import load_settings
from spark_jobs.terminal.tables import MOST_ROWS, MOST_SECONDS

if TYPE_CHECKING:
    from spark_jobs.serving.sql.query import PinnedQuery, QueryResult

Limit = Annotated[
    int, typer.Option(min=0, max=MOST_ROWS, help="Maximum number of rows; 0 for all.")
]
Seconds = Annotated[
    float, typer.Option(min=0, max=MOST_SECONDS, help="Time limit of a query; 0 for none.")
]
Personal = Annotated[bool, typer.Option("--pii", help="Show personal data unmasked.")]
DEFAULT_ROWS = 1000
DEFAULT_SECONDS = 300.0
NOT_TEXT = "the input is not UTF-8 text"


def query(
    context: typer.Context,
    sql: Annotated[
        str,
        typer.Argument(help='One SELECT; tables are named layer.name. "-" reads it from stdin.'),
    ],
    form: Annotated[
        OutputFormat, typer.Option("--format", "-f", help="Output format of the rows.")
    ] = OutputFormat.TABLE,
    limit: Limit = DEFAULT_ROWS,
    seconds: Seconds = DEFAULT_SECONDS,
    pii: Personal = False,
    env: EnvironmentName = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.", dir_okay=False)
    ] = None,
    show_sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL that Spark would run, and exit.")
    ] = False,
) -> None:
    """Run one SELECT over bronze, silver, gold and ops, or SHOW, or DESCRIBE."""
    from spark_jobs.serving.sql.catalog import catalog_answer
    from spark_jobs.serving.sql.output import write_rows

    if form is OutputFormat.PARQUET and output is None and not show_sql:
        raise typer.BadParameter("parquet is written to a file: pass --output FILE")
    if output is not None and not output.parent.is_dir():
        raise typer.BadParameter(f"directory {str(output.parent)!r} does not exist")
    text = given_text() if sql == "-" else sql
    session = QuerySession(load_settings(context.obj), limit, seconds, pii, environment=env)
    if (rows := catalog_answer(session, text)) is not None:
        write_rows(rows, form, output=output)
        return
    pinned = session.pinned(text)
    if show_sql:
        typer.echo(pinned.sql)
        return
    messages = Console(stderr=True)
    result = run_shown(session, pinned, messages)
    write_rows(result.rows, form, output=output)
    print_limit_note(result, limit, messages)


def given_text() -> str:
    """The text on stdin, without a byte order mark.

    Raises:
        BadParameter: it is not UTF-8.
    """
    try:
        return typer.get_binary_stream("stdin").read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(NOT_TEXT) from error


def run_shown(session: QuerySession, pinned: PinnedQuery, messages: Console) -> QueryResult:
    """Run a query, with a progress indicator on a terminal.

    Raises:
        LakehouseError: see ``QuerySession.run``.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=messages, transient=True) as progress:
        task = progress.add_task("start Spark", total=None)
        _ = session.spark
        progress.update(task, description="query")
        return session.run(pinned)


def print_limit_note(result: QueryResult, limit: int, messages: Console) -> None:
    """Print a note if rows were left out."""
    if result.more:
        messages.print(f"The first {limit:,} rows; there are more: raise --limit, or 0 for all.")

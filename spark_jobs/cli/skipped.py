"""``tidemark source skipped``: changes of the database that the connector could not read."""

from __future__ import annotations

from typing import Annotated

import typer

from spark_jobs.serving.project import asker, open_project
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable


def skipped(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="How you handled them; it is recorded.")] = "",
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Mark them as answered, or only show them.")
    ] = False,
) -> None:
    """Show changes that the connector skipped; with --run, mark them as answered."""
    from spark_jobs.planning.request import why
    from spark_jobs.stack.skipped import answer, unanswered

    because = why(reason) if run else None
    with open_project(context) as project:
        found = unanswered(project.settings)
        if because is not None:
            count = answer(project.settings, by=asker(), reason=because.reason)
            typer.echo(f"Changes that are answered now: {count:,}")
            return
    if not found:
        typer.echo("The connector left out no change.")
        return
    table = FittedTable(title="Changes that the connector left out")
    for column in ("at", "position", "operation", "transaction", "committed at", "cause"):
        table.add_column(column)
    for one in found:
        times = [f"{at:%Y-%m-%d %H:%M:%S}" if at else "" for at in (one.at, one.committed_at)]
        table.add_row(times[0], one.lsn, one.operation, one.transaction, times[1], one.cause)
    wide_console().print(table)

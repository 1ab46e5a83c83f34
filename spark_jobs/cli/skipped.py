"""``tidemark source skipped``: changes of the database that the connector could not read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spark_jobs.serving.project import asker, open_project
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.stack.skipped import Skipped


def skipped(
    context: typer.Context,
    reason: Annotated[str, typer.Option(help="How you handled them; it is recorded.")] = "",
    run: Annotated[
        bool, typer.Option("--run/--dry-run", help="Mark them as answered, or only show them.")
    ] = False,
    through: Annotated[
        str | None,
        typer.Option(metavar="POSITION", help="The last of them, as the list shows. Default: all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the changes as JSON.")] = False,
) -> None:
    """Show changes that the connector skipped; with --run, mark them as answered."""
    from spark_jobs.planning.request import why
    from spark_jobs.stack.skipped import answer, unanswered

    because = why(reason) if run else None
    with open_project(context) as project:
        found = _through(unanswered(project.settings), through)
        if because is not None and found:
            # No change that comes meanwhile, which nobody has seen.
            answer(project.settings, by=asker(), reason=because.reason, through=found[-1])
    if as_json:
        shown = [{**one.as_dict(), "answered": because is not None} for one in found]
        typer.echo(json.dumps(shown, indent=2))
        return
    if found:
        wide_console().print(skipped_table(found))
    if because is not None:
        typer.echo(f"Changes that are answered now: {len(found):,}")
    elif found:
        last = f" --through {found[-1].lsn}" if found[-1].lsn else ""
        typer.echo(f"When each is handled: tidemark source skipped --run{last} --reason TEXT")
    else:
        typer.echo("The connector left out no change.")


def _through(changes: list[Skipped], position: str | None) -> list[Skipped]:
    """The changes up to the one at a position.

    Raises:
        ChangeNotSkippedError: there is none.
    """
    from spark_jobs.stack.errors import ChangeNotSkippedError

    if position is None:
        return changes
    places = [one.lsn for one in changes]
    known, wanted = list(filter(None, places)), position.upper()
    if wanted not in known:
        raise ChangeNotSkippedError(position, known)
    return changes[: len(places) - places[::-1].index(wanted)]


def skipped_table(changes: Sequence[Skipped]) -> Table:
    """One row per change."""
    table = FittedTable(title="Changes that the connector left out")
    for column in ("at", "position", "operation", "transaction", "committed at", "cause"):
        table.add_column(column)
    for one in changes:
        times = [f"{at:%Y-%m-%d %H:%M:%S}" if at else "" for at in (one.at, one.committed_at)]
        table.add_row(times[0], one.lsn, one.operation, one.transaction, times[1], one.cause)
    return table

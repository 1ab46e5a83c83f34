"""``tidemark reconcile``: records in against records out, layer by layer."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from spark_jobs.serving.project import OpenProject, open_project
from spark_jobs.serving.report.balances import (
    MOST_ROWS,
    Balance,
    balances,
    balances_table,
    reconcilable,
)
from spark_jobs.serving.source_dsn import source_dsn
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.steps import Steps
from spark_jobs.terminal.tables import MOST_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_SECONDS = 2.0


def reconcile(
    context: typer.Context,
    tables: Annotated[
        list[str] | None, typer.Argument(help="Silver tables. Default: all that read topics.")
    ] = None,
    wait: Annotated[
        float,
        typer.Option(min=0, max=MOST_SECONDS, help="Seconds to wait until all counts balance."),
    ] = 0,
    most_rows: Annotated[
        int,
        typer.Option(
            min=0,
            help="Compare about so many rows of a larger table with the database, chosen at random "
            "by a hash of their keys; 0 compares all.",
        ),
    ] = MOST_ROWS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the balances as JSON.")] = False,
) -> None:
    """Compare counts of Kafka, bronze, silver and Postgres; exit with 1 if they differ."""
    with open_project(context) as project:
        dsn = source_dsn(project.settings)
        found = settled_balances(project, tables, wait=wait, dsn=dsn, most_rows=most_rows)
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2, default=str))
    else:
        # A file or a pipe has no width; numbers must not be truncated there.
        console = wide_console()
        console.print(balances_table(found))
        for one in found:
            if one.database is not None and one.database.sample is not None:
                sample = one.database.sample
                console.print(
                    f"{one.silver}: compared 1 of {sample.ranges} ranges of keys, "
                    f"{one.database.source_rows:,} of about {sample.rows:,} rows"
                )
            for line in (*one.problems, *one.notes):
                console.print(f"{one.silver}: {line}", markup=False, soft_wrap=True)
    if any(one.verdict != "balanced" for one in found):
        raise typer.Exit(1)


def settled_balances(
    project: OpenProject,
    tables: list[str] | None = None,
    *,
    wait: float = 0,
    dsn: str | None = None,
    most_rows: int = MOST_ROWS,
) -> list[Balance]:
    """The balances; computed repeatedly until all are balanced or the time is over.

    Args:
        project: the open project.
        tables: names of silver tables; None: all over topics.
        wait: seconds.
        dsn: the source database; None leaves it out.
        most_rows: as for ``balances``.

    Raises:
        SilverTableUnknownError: there is no such silver table over a topic.
    """
    from spark_jobs.storage.session import open_session

    entries = reconcilable(project, tables)
    steps = Steps(Console(stderr=True))
    sessions: list[SparkSession] = []

    def session() -> SparkSession:
        if not sessions:
            sessions.append(open_session(project.settings))
        return sessions[0]

    deadline = time.monotonic() + wait
    try:
        while True:
            with steps.step("reconcile") as note:
                found = list(
                    balances(
                        project,
                        session=session,
                        dsn=dsn,
                        entries=entries,
                        note=note,
                        most_rows=most_rows,
                    )
                )
            settled = all(one.verdict == "balanced" for one in found)
            if settled or time.monotonic() + PAUSE_SECONDS > deadline:
                return found
            time.sleep(PAUSE_SECONDS)
    finally:
        for one in sessions:
            one.stop()

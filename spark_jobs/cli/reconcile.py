"""``tidemark reconcile``: records in against records out, layer by layer."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated

import typer

from spark_jobs.cli.balances import Balance, balances, balances_table
from spark_jobs.cli.console import wide_console
from spark_jobs.cli.project import OpenProject, open_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAUSE_SECONDS = 2.0


def reconcile(
    context: typer.Context,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait until all is balanced.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the balances as JSON.")] = False,
) -> None:
    """Kafka against bronze, bronze against silver, silver against Postgres; 1 if they differ."""
    with open_project(context) as project:
        found = settled_balances(project, wait=wait, dsn=source_dsn(project))
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2, default=str))
    else:
        # A file or a pipe has no width of its own; the numbers must not be cut there.
        console = wide_console()
        console.print(balances_table(found))
        for one in found:
            for problem in one.problems:
                console.print(f"{one.silver}: {problem}", markup=False, soft_wrap=True)
    if any(one.verdict != "balanced" for one in found):
        raise typer.Exit(1)


def settled_balances(
    project: OpenProject, *, wait: float = 0, dsn: str | None = None
) -> list[Balance]:
    """The balances, asked again until all are balanced or the time is over.

    Args:
        project: the open project.
        wait: seconds.
        dsn: the source database; None leaves it out.
    """
    from spark_jobs.storage.session import open_session

    sessions: list[SparkSession] = []

    def session() -> SparkSession:
        if not sessions:
            sessions.append(open_session(project.settings))
        return sessions[0]

    deadline = time.monotonic() + wait
    try:
        while True:
            found = list(balances(project, session=session, dsn=dsn))
            settled = all(one.verdict == "balanced" for one in found)
            if settled or time.monotonic() + PAUSE_SECONDS > deadline:
                return found
            time.sleep(PAUSE_SECONDS)
    finally:
        for one in sessions:
            one.stop()


def source_dsn(project: OpenProject) -> str | None:
    """The database that changes come from: as set, or the local stack's shop, or None."""
    from spark_jobs.access.secrets import secret_path
    from spark_jobs.local.postgres import DEBEZIUM, SHOP, dsn, secret_name

    settings = project.settings
    if settings.source_database:
        return settings.source_database
    if not secret_path(settings, secret_name(DEBEZIUM)).exists():
        return None
    return dsn(settings, database=SHOP, role=DEBEZIUM)

"""``tidemark sink``: what tables deliver to Kafka, Postgres, Redis and Cassandra."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.names import passed_keys
from spark_jobs.serving.project import OpenProject, open_project
from spark_jobs.serving.report.sink_status import print_sinks, sink_statuses
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.sinks.delivery import Delivered, Delivery
    from spark_jobs.sinks.verify import SinkVerification

app = typer.Typer(
    no_args_is_help=True,
    help="The sinks that tables declare: Kafka, Postgres, Redis and Cassandra.",
)
# Width of a value; a row can be long.
SHOWN_CHARACTERS = 160

Names = Annotated[list[str] | None, typer.Argument(help="The sinks. Default: all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Finding = tuple[str, "SinkVerification | LakehouseError"]


@app.callback()
def sinks() -> None:
    """Commands for sinks."""


@app.command()
def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the last delivery, the lag and the error of each sink."""
    from spark_jobs.state.types import utc_now

    now = utc_now()
    with open_project(context) as project:
        found = sink_statuses(project, now=now)
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in found], indent=2))
    elif found:
        print_sinks(wide_console(), found, now=now)
    else:
        typer.echo("No table declares a sink.")


@app.command()
def run(context: typer.Context, names: Names = None) -> None:
    """Deliver pending changes to the sinks once; the streaming application does it continuously."""
    with open_project(context) as project, opened(project, names) as work:
        problems = []
        for name, delivery in work.items():
            try:
                done = delivery.catch_up()
            except LakehouseError as error:
                problems.append(error)
                continue
            _record(project, name, done)
            _tell(name, done)
        if problems:
            raise ProblemsError(problems)


@app.command()
def rebuild(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The sink.")],
) -> None:
    """Make a sink equal to its table, and continue from that version.

    Rows that the table does not have are deleted. If a rebuild is killed, run it again.
    """
    with open_project(context) as project, opened(project, [name]) as work:
        done = work[name].rebuild()
        _record(project, name, done)
        _tell(name, done)


@app.command()
def verify(context: typer.Context, names: Names = None, as_json: AsJson = False) -> None:
    """Compare sinks with their tables at the delivered versions; exit with 1 if any differs."""
    from spark_jobs.sinks.verify import verify_sink

    with open_project(context) as project, opened(project, names) as work:
        found = [(name, _verified(verify_sink, one)) for name, one in work.items()]
    if as_json:
        typer.echo(json.dumps([_as_dict(*one) for one in found], indent=2))
    else:
        console = wide_console()
        console.print(findings_table(found))
        for name, one in found:
            if not isinstance(one, LakehouseError) and one.examples:
                console.print(examples_table(name, one))
    if any(isinstance(one, LakehouseError) or not one.passed for _, one in found):
        raise typer.Exit(1)


@contextmanager
def opened(project: OpenProject, names: list[str] | None) -> Iterator[dict[str, Delivery]]:
    """Open the named sinks, or all, for the duration of the block.

    Yields:
        their deliveries, by the sink's name.

    Raises:
        SinkUnknownError: a sink does not exist.
    """
    from spark_jobs.sinks.errors import SinkUnknownError
    from spark_jobs.sinks.runner import deliveries
    from spark_jobs.stack.sink_addresses import sink_addresses
    from spark_jobs.storage.session import open_session

    known = project.manifest.sinks
    for name in names or ():
        if name not in known:
            raise SinkUnknownError(name, sorted(known))
    sessions: list[SparkSession] = []

    def session() -> SparkSession:
        if not sessions:
            sessions.append(open_session(project.settings))
        return sessions[0]

    work = deliveries(
        project.settings,
        project.manifest,
        lambda: sink_addresses(project.settings),
        spark=session,
    )
    try:
        yield {name: work[name] for name in (names or sorted(known))}
    finally:
        for one in work.values():
            one.close()
        for spark in sessions:
            spark.stop()


def findings_table(found: list[Finding]) -> Table:
    """One row per sink."""
    table = FittedTable()
    for name in ("sink", "finding", "detail"):
        table.add_column(name, overflow="fold")
    table.add_column("rows", justify="right")
    for name, one in found:
        if isinstance(one, LakehouseError):
            table.add_row(name, one.condition, Text(one.primary), "", style="red")
            continue
        detail = f"version {one.watermark.version}"
        if not one.passed:
            detail += (
                f": {one.missing:,} missing, {one.unexpected:,} unexpected, "
                f"{one.different:,} different"
            )
        word, style = ("EQUAL", "") if one.passed else ("DIFFERENT", "red")
        table.add_row(name, word, detail, f"{one.rows:,}", style=style)
    return table


def examples_table(name: str, found: SinkVerification) -> Table:
    """Some of the keys that differ."""
    table = FittedTable(title=f"{name}: rows that differ")
    for heading in ("key", "sink", "table"):
        table.add_column(heading, overflow="fold")
    for one in found.examples:
        table.add_row(*map(_shown, (one.key, one.before, one.after)))
    return table


def _verified(
    verify_sink: Callable[[Delivery], SinkVerification], delivery: Delivery
) -> SinkVerification | LakehouseError:
    try:
        return verify_sink(delivery)
    except LakehouseError as error:
        return error


def _record(project: OpenProject, name: str, done: Delivered) -> None:
    from spark_jobs.sinks.runner import progress_of

    project.store.record_progress(progress_of(name, done))


def _tell(name: str, done: Delivered) -> None:
    how = "built from" if done.built else "holds"
    changes = f"{done.changes:,} change{'' if done.changes == 1 else 's'}"
    typer.echo(f"{name}: {how} version {done.watermark.version}, {changes}")


def _as_dict(name: str, found: SinkVerification | LakehouseError) -> dict[str, Any]:
    if isinstance(found, LakehouseError):
        return {
            "sink": name,
            **passed_keys(passed=False),
            "finding": found.condition,
            "error": found.as_dict(),
        }
    return {**found.as_dict(), "finding": "EQUAL" if found.passed else "DIFFERENT"}


def _shown(text: str | None) -> Text:
    if text is None:
        return Text("none")
    safe = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)
    return Text(safe if len(safe) <= SHOWN_CHARACTERS else f"{safe[:SHOWN_CHARACTERS]}...")

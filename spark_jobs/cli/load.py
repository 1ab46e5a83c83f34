"""``tidemark load``: generates load on the demo's shop and topics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from spark_jobs.settings import load_settings
from spark_jobs.terminal.tables import MOST_SECONDS, FittedTable

if TYPE_CHECKING:
    from spark_jobs.demo.tally import Tally


def load(
    context: typer.Context,
    rate: Annotated[
        float,
        typer.Option(min=1, max=20_000, help="Operations per second: row changes and records."),
    ] = 50,
    seconds: Annotated[float, typer.Option(min=1, max=MOST_SECONDS, help="Duration.")] = 60,
    seed: Annotated[int, typer.Option(help="The same seed generates the same load.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as JSON.")] = False,
) -> None:
    """Generate transactions and events on the running stack, some late, repeated or malformed."""
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.demo.load import LoadOrder, run_load
    from spark_jobs.demo.operations import Operation
    from spark_jobs.stack.postgres import SHOP, dsn

    settings = load_settings(context.obj)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("operations", total=int(rate * seconds))

        def advance(operation: Operation) -> None:
            progress.advance(bar, operation.action.weight)

        tally = run_load(
            LoadOrder(rate, seconds, seed),
            shop_dsn=dsn(settings, database=SHOP, role=SHOP),
            kafka=kafka_access(settings, Principal.LOADER),
            progress=advance,
        )
    if as_json:
        typer.echo(json.dumps(tally.as_dict(), indent=2))
    else:
        Console().print(tally_table(tally))


def tally_table(tally: Tally) -> Table:
    """What was sent, one row per table and per topic."""
    table = FittedTable(title="Sent")
    table.add_column("to")
    table.add_column("what")
    table.add_column("count", justify="right")
    for counter in (tally.changes, tally.records):
        for (name, what), count in sorted(counter.items()):
            table.add_row(name, what.replace("_", " "), f"{count:,}")
    table.add_section()
    table.add_row("shop", "transactions committed", f"{tally.committed:,}")
    table.add_row("shop", "transactions rolled back", f"{tally.rolled_back:,}")
    return table

"""``tidemark quality``: a report on the refreshes, audits and records of one day."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from spark_jobs.serving.project import open_project
from spark_jobs.serving.report.status_tables import duration
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.serving.report.quality import DayQuality

_STATUSES = ("published", "skipped", "blocked", "failed", "superseded")


def quality(
    context: typer.Context,
    day: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="The day (UTC). Default: yesterday."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Report on a day: attempts, failed expectations, late publications, rejected records."""
    from spark_jobs.serving.report.quality import day_quality
    from spark_jobs.state.types import utc_now

    chosen = (day or utc_now() - timedelta(days=1)).date()
    if chosen > utc_now().date():
        raise typer.BadParameter(f"{chosen} lies ahead", param_hint="--day")
    with open_project(context) as project:
        found = day_quality(project, chosen)
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    console = wide_console()
    for table in (views_table(found), expectations_table(found), quarantine_table(found)):
        if table.row_count:
            console.print(table)
    if not found.expectations:
        refreshed = any(one.ended.get("published") for one in found.views)
        said = "Every expectation passed." if refreshed else "No view was refreshed."
        console.print(said)
    if not found.quarantine:
        console.print("No record was rejected.")


def views_table(found: DayQuality) -> Table:
    """One row per gold view: outcomes of its attempts, and late publications."""
    table = FittedTable(title=f"gold views on {found.day} (UTC)")
    table.add_column("view", no_wrap=True)
    for name in ("attempts", *_STATUSES, "warned", "late"):
        table.add_column(name, justify="right")
    for one in found.views:
        counts = [one.attempts, *(one.ended.get(status, 0) for status in _STATUSES), one.warned]
        late = "" if one.longest is None else f"{one.late}, up to {duration(one.longest)}"
        table.add_row(one.view, *(f"{count:,}" if count else "" for count in counts), late)
    return table


def expectations_table(found: DayQuality) -> Table:
    """One row per failed expectation."""
    table = FittedTable(title="expectations that failed")
    table.add_column("view", no_wrap=True)
    for name in ("expectation", "column", "severity"):
        table.add_column(name, overflow="fold")
    table.add_column("audits", justify="right")
    for one in found.expectations:
        words = (one.view, one.expectation, one.column or "", one.severity)
        table.add_row(*map(Text, words), f"{one.audits:,}")
    return table


def quarantine_table(found: DayQuality) -> Table:
    """One row per silver table and reason."""
    table = FittedTable(title="records that went to quarantine")
    for name in ("silver table", "reason"):
        table.add_column(name, no_wrap=True)
    table.add_column("records", justify="right")
    for one in found.quarantine:
        table.add_row(Text(one.silver), Text(one.reason), f"{one.records:,}")
    return table

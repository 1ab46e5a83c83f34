"""``tidemark impact``: predicts what refreshes would compute after a change of one table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from spark_jobs.serving.project import open_project
from spark_jobs.terminal.console import wide_console
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.graph.maintenance.reach import RowsMoved
    from spark_jobs.planning.impact import Impact, ViewImpact

_STYLES = {"skip": "dim", "full": "yellow", "incremental": "green"}


def impact(
    context: typer.Context,
    table: Annotated[str, typer.Argument(help="silver.NAME, gold.NAME or a Delta source.")],
    versions: Annotated[
        str | None,
        typer.Option(help="A..B: the change. Default: what each view has not published yet."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what the refreshes of downstream views would compute for a change of TABLE."""
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.explain import impact as gold
    from spark_jobs.planning.impact import version_range
    from spark_jobs.state.types import utc_now

    asked = None if versions is None else version_range(versions)
    with open_project(context) as project:
        surroundings = GoldContext(project.settings, project.manifest, project.store)
        found = gold.impact(surroundings, table, versions=asked, now=utc_now())
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
        return
    wide_console().print(impact_table(found) if found.views else f"No gold view reads {table}.")


def impact_table(found: Impact) -> Table:
    """One row per view, upstream views first."""
    asked = "what is not published yet" if found.versions is None else f"versions {found.versions}"
    table = FittedTable(
        title=f"{found.table}, now at version {found.newest.version}: {asked}",
        caption="Nothing was computed. ≤: a limit from the Delta log and the view's SQL; else "
        "counted.",
    )
    table.add_column("view", no_wrap=True)
    table.add_column("a refresh", overflow="fold")
    for name in ("row deltas it reads", "its rows that change", "rows read"):
        table.add_column(name, justify="right", overflow="fold")
    for one in found.views:
        style = "dim" if one.untouched else ""
        table.add_row(
            one.plan.view, _decision(one), _arriving(one), _changing(one), _read(one), style=style
        )
    return table


def _decision(one: ViewImpact) -> Text:
    if one.untouched is not None:
        return Text.assemble("untouched: ", one.untouched)
    waits = ("waits for a person; ", "red") if one.waits else ""
    return Text.assemble(waits, (one.plan.word, _STYLES[one.plan.word]), ": ", one.plan.reason.text)


def _arriving(one: ViewImpact) -> str:
    lines = []
    for name, arrival in one.arrivals.items():
        sign = "" if arrival.exact else "≤ "
        lines.append(f"{name} {sign if arrival.rows else ''}{_moved(arrival.rows)}")
    return "\n".join(lines)


def _changing(one: ViewImpact) -> str:
    if one.untouched is not None:
        return "none"
    of = "" if one.rows is None else f"\nof {one.rows:,}"
    if one.changes is None:
        return f"any{of}"
    if not one.changes.total:
        return f"none{of}"
    return f"≤ {_moved(one.changes)}{of}{_percent(one.share)}"


def _read(one: ViewImpact) -> str:
    least, most = one.reads_at_least, one.reads_at_most
    if one.plan.skips:
        return "none"
    amounts = [_count(least)] if least == most else [_count(least), _count(most)]
    return f"{' to '.join(amounts)}\nof {_count(one.inputs_rows)}{_percent(one.share_read)}"


def _moved(rows: RowsMoved | None) -> str:
    return "unknown" if rows is None else f"-{rows.leave:,} +{rows.enter:,}"


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({share:.0%})"

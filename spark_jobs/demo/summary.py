"""The demo's summary: what was sent, the results, and addresses for further exploration."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.settings import Settings
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_jobs.demo.refreshes import OwnRefresh, ViewProgress
    from spark_jobs.demo.tally import Tally
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.base.freshness import ViewStatus
    from spark_jobs.gold.verify.published import Verification
    from spark_jobs.serving.report.balances import Balance

FIRST_ROWS = 4
# Views whose first rows are shown: one each about orders, videos, accounts, security, customers.
SHOWN = (
    "daily_order_summary",
    "enriched_orders",
    "trending_titles",
    "account_audit",
    "failed_logins",
    "user_dashboard",
)


@dataclass(frozen=True)
class Ending:
    """The results of the demo's steps.

    Attributes:
        refreshed: the views that Airflow's schedule or the streams refresh.
        verified: one entry per gold view, by name.
    """

    tally: Tally
    reconciled: list[Balance]
    refreshed: list[ViewProgress]
    verified: list[Verification]


def show(console: Console, gold: GoldContext, ending: Ending) -> None:
    """Print all of it."""
    from spark_jobs.gold.base.freshness import view_status
    from spark_jobs.serving.report.balances import balances_table
    from spark_jobs.state.types import utc_now

    now = utc_now()
    statuses = [view_status(gold, view, now=now) for view in sorted(gold.manifest.gold)]
    console.print(f"\n{sent_line(ending.tally)}\n")
    console.print(balances_table(ending.reconciled))
    console.print(gold_overview(gold, ending, statuses))
    for table in gold_tables(gold):
        console.print(table)
    console.print(addresses_table(gold.settings))


def sent_line(tally: Tally) -> str:
    """The load in one sentence."""
    records = sum(tally.records.values())
    twice, late, shuffled = (
        sum(count for (_, trait), count in tally.records.items() if trait == name)
        for name in ("duplicate", "late", "out_of_order")
    )
    return (
        f"Sent {sum(tally.changes.values()):,} row changes in {tally.committed:,} transactions "
        f"({tally.rolled_back} more were rolled back) and {records:,} events: {twice} sent twice, "
        f"{late} up to 26 hours late, {shuffled} out of order, "
        f"{sum(tally.malformed.values())} malformed."
    )


def gold_overview(gold: GoldContext, ending: Ending, statuses: list[ViewStatus]) -> Table:
    """One row per gold view: who refreshed it, what was published, and the result of `verify`."""
    from spark_jobs.serving.report.status_tables import freshness_cell, verdict_cell

    own = {one.view: one.published for one in ending.refreshed if one.published is not None}
    table = FittedTable(title="Gold views")
    for name in ("view", "refreshed by", "maintenance"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "version"):
        table.add_column(name, justify="right")
    for name in ("freshness", "rules", "against its SQL"):
        table.add_column(name, overflow="fold")
    for status, verification in zip(statuses, ending.verified, strict=True):
        maintenance = gold.manifest.gold[status.view].maintenance
        table.add_row(
            status.view,
            refreshed_by(own.get(status.view)),
            "" if maintenance is None else maintenance.rule.words,
            "" if verification.rows is None else f"{verification.rows:,}",
            f"{verification.version}",
            freshness_cell(status),
            verdict_cell(status.verdict),
            Text(verification.finding.value, style="green" if verification.passed else "red"),
        )
    return table


def refreshed_by(own: OwnRefresh | None) -> str:
    """Who refreshed a view."""
    if own is None:
        return "the demo"
    return "the streams" if own.run is None else f"schedule, {own.run.interval_end:%H:%M} UTC"


def show_first(
    console: Console, gold: GoldContext, views: Sequence[str], *, seconds: float
) -> None:
    """Print the first rows of the first views, and after how many seconds they were there."""
    console.print(f"\n[bold]First results[/] after {seconds:.0f} s:")
    for view in views:
        if table := gold_table(gold, view):
            console.print(table)


def gold_tables(gold: GoldContext) -> list[Table]:
    """The first rows of some views, in the order of their columns.

    A view without rows is left out: on a slow machine, no title may be trending any more.
    """
    return [table for view in SHOWN if (table := gold_table(gold, view))]


def gold_table(gold: GoldContext, view: str) -> Table | None:
    """The first rows of a view, in the order of its columns; None if it is empty."""
    from spark_jobs.storage import reader

    rows = reader.read_by_delta(gold.spark, gold.published_at(view))
    first = rows.orderBy(*rows.columns).limit(FIRST_ROWS).collect()
    if not first:
        return None
    table = FittedTable(title=f"gold.{view}", numbered=True)
    for name, kind in rows.dtypes:
        number = kind in {"bigint", "int"} or kind.startswith("decimal")
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in first:
        table.add_row(*map(cell, row))
    return table


def cell(value: object) -> str:
    """A value as text; a time to the second."""
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)


def addresses_table(settings: Settings) -> Table:
    """Addresses for further exploration."""
    from spark_jobs.stack.airflow_config import airflow_address

    table = Table(title="Look further", title_justify="left", show_header=False)
    table.add_row("Airflow", airflow_address(settings))
    table.add_row("Kafka", settings.kafka)
    table.add_row("Delta tables", settings.lake)
    table.add_row("ask in SQL", 'tidemark query "SELECT * FROM gold.user_order_stats LIMIT 5"')
    return table


def show_logins(console: Console, settings: Settings, *, users_made: bool) -> None:
    """Airflow's users: passwords if they are new, otherwise the file that contains them."""
    from spark_jobs.access.secrets import secret_path
    from spark_jobs.stack.secrets import AIRFLOW_USERS, airflow_users

    path = secret_path(settings, AIRFLOW_USERS)
    if users_made:
        table = FittedTable("user", "role", "password", title="Airflow's users")
        for name, user in airflow_users(settings).items():
            table.add_row(name, user["role"], user["password"])
        console.print(table)
        console.print(f"The passwords are shown once; they are stored in {path}", soft_wrap=True)
    else:
        console.print(f"Airflow's users and passwords are in {path}", soft_wrap=True)

"""``tidemark explain``: what a refresh would do now, and why; nothing is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from spark_jobs.cli.project import chosen_views, open_project

if TYPE_CHECKING:
    from spark_jobs.gold.context import GoldContext
    from spark_jobs.planning.plan import RefreshPlan


def explain(
    context: typer.Context,
    views: Annotated[list[str] | None, typer.Argument(help="Gold views.")] = None,
    all_views: Annotated[bool, typer.Option("--all", help="Every gold view.")] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL with every table at its version.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the plans as JSON.")] = False,
) -> None:
    """Show the plan of each gold view: the decision, its reason, and what moved upstream."""
    from spark_jobs.gold.refresh import Refresher

    with open_project(context) as project:
        chosen = chosen_views(project.manifest, views, everything=all_views)
        refresher = Refresher(project.settings, project.manifest, project.store)
        plans = [refresher.explain(view) for view in chosen]
        queries = {plan.view: _sql(refresher.context, plan) for plan in plans} if sql else {}
    if as_json:
        typer.echo(json.dumps([_as_dict(plan, queries) for plan in plans], indent=2))
        return
    if sql:
        for plan in plans:
            typer.echo(f"-- gold.{plan.view}: {plan.line}\n{queries[plan.view]};\n")
        return
    Console().print(plans_table(plans))


def plans_table(plans: list[RefreshPlan]) -> Table:
    """One row per view, for people."""
    table = Table()
    for name in ("view", "decision", "reason", "inputs", "reads"):
        table.add_column(name, overflow="fold")
    for plan in plans:
        table.add_row(
            plan.view,
            plan.word,
            plan.reason.text,
            "\n".join(f"{change} {change.kind.value}" for change in plan.changes),
            _estimate(plan),
            style="dim" if plan.skips else "",
        )
    return table


def _estimate(plan: RefreshPlan) -> str:
    if plan.estimate is None:
        return ""
    rows = "? rows" if plan.estimate.rows is None else f"{plan.estimate.rows:,} rows"
    return f"{rows}\n{plan.estimate.bytes:,} bytes"


def _sql(context: GoldContext, plan: RefreshPlan) -> str:
    from spark_jobs.gold.pinned import pinned_sql

    entry = context.entry(plan.view)
    return pinned_sql(context, entry, vector=plan.vector, clock=plan.clock)


def _as_dict(plan: RefreshPlan, queries: dict[str, str]) -> dict[str, Any]:
    query = {"sql": queries[plan.view]} if plan.view in queries else {}
    return {**plan.as_dict(), **query}

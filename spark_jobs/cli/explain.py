"""``tidemark explain``: what a refresh would do now, and why; nothing is written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from spark_jobs.cli.completion import Views
from spark_jobs.serving.project import chosen_views, open_project
from spark_jobs.serving.report.explanations import explanation, plans_table
from spark_jobs.terminal.console import NO_VIEW, line_console

if TYPE_CHECKING:
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.planning.plan import RefreshPlan


def explain(
    context: typer.Context,
    views: Views = None,
    all_views: Annotated[bool, typer.Option("--all", help="One line for every gold view.")] = False,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL with the version of every table.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show what a refresh would do: decision, reason, strategy of each operator, cost."""
    from spark_jobs.gold.explain.explanation import explained, strategy_name
    from spark_jobs.gold.refresh.steps import Refresher

    console = Console(highlight=False)
    with open_project(context, applied=False) as project:
        chosen = chosen_views(project, views, everything=all_views)
        refresher = Refresher(project.settings, project.manifest, project.store)
        gold = refresher.context
        plans = [refresher.explain(view) for view in chosen]
        if as_json:
            found = [_as_dict(gold, plan, sql=sql) for plan in plans]
            typer.echo(json.dumps(found, indent=2))
        elif sql:
            for plan in plans:
                typer.echo(script(gold, plan))
        elif all_views:
            entries = {plan.view: project.manifest.gold[plan.view] for plan in plans}
            strategies = {view: strategy_name(entry) for view, entry in entries.items()}
            table = plans_table(plans, strategies=strategies)
            line_console().print(table if plans else NO_VIEW)
        else:
            for plan in plans:
                console.print(explanation(explained(gold, plan)))


def script(context: GoldContext, plan: RefreshPlan) -> str:
    """The SQL of a plan, to read or to run; it writes no table."""
    from spark_jobs.gold.explain.refresh_sql import refresh_sql

    return f"-- gold.{plan.view}: {plan.line}\n\n{refresh_sql(context, plan).text}\n"


def _as_dict(context: GoldContext, plan: RefreshPlan, *, sql: bool) -> dict[str, Any]:
    from spark_jobs.gold.explain.explanation import explained
    from spark_jobs.gold.explain.refresh_sql import refresh_sql

    found = explained(context, plan).as_dict()
    if sql:
        script = refresh_sql(context, plan)
        found["sql"] = script.result.query
        found["statements"] = [
            {"name": one.name, "comment": one.comment, "sql": one.query}
            for one in script.statements
        ]
        found["publish"] = None if script.publish is None else script.publish.as_dict()
    return found

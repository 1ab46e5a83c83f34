"""Tables of environments for the terminal: a plan, and the list of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.state.environments import Environment


def planned_table(plan: dict[str, Any]) -> Table:
    """A row per view of a planned environment.

    Args:
        plan: from ``PlannedEnvironment.as_dict``.
    """
    title = f"Environment {plan['environment']}, against {plan['base']}"
    table = FittedTable("view", "why", "what happens", title=title)
    for one in plan["views"]:
        work = ["build" if one["builds"] else "up to date", one["cost"] * one["builds"]]
        if one["reads_environment"]:
            above = ", ".join(f"gold.{name}" for name in one["reads_environment"])
            work.append(f"reads {above} of the environment")
        table.add_row(f"gold.{one['view']}", one["why"], "; ".join(filter(None, work)))
    for view in plan["gone"]:
        table.add_row(f"gold.{view}", "differs no more", "delete from the environment")
    return table


def environments_table(environments: Sequence[Environment]) -> Table:
    """A row per view of each environment."""
    table = FittedTable("environment", "status", "view", "state", "rows", "by", "since")
    for one in environments:
        since = f"{one.updated_at:%Y-%m-%d %H:%M}"
        for view, held in one.views.items():
            state = held.state.value + (f": {held.problem}" if held.problem else "")
            rows = "" if held.rows is None else f"{held.rows:,}"
            table.add_row(one.name, one.status.value, f"gold.{view}", state, rows, one.who, since)
        if not one.views:
            table.add_row(one.name, one.status.value, "", "", "", one.who, since)
    return table

"""Renders a plan for the terminal: one row per differing declaration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from spark_jobs.deploy.change import Action, Category, Change, Kind, Work
from spark_jobs.deploy.plan import Plan
from spark_jobs.terminal.tables import FittedTable

_SIGNS = {
    Action.ADDED: ("+", "green"),
    Action.CHANGED: ("~", "yellow"),
    Action.REMOVED: ("-", "red"),
}
_STYLES = {Category.BREAKING: "red", Category.NON_BREAKING: "green", Category.METADATA: "dim"}
_SHOWN_NAMES = 6
# If there are more steps of a kind, they share one line.
_LISTED = 4


def plan_view(plan: Plan) -> RenderableType:
    """The whole plan, for consoles of at least 60 columns."""
    parts: list[RenderableType] = []
    if plan.changes:
        parts.append(changes_table(plan))
    if plan.unfinished:
        text = f"Deployment {plan.unfinished} did not end; its open steps are included."
        parts.append(Text(text))
    if plan.steps:
        parts.append(Text(""))
        parts.append(Text("Steps, in this order:", style="bold"))
        grid = Table.grid(padding=(0, 1, 0, 1))
        for at, text in enumerate(step_lines(plan), 1):
            grid.add_row(str(at), text)
        parts.append(grid)
    if plan.kept:
        parts.append(Text(""))
        names = ", ".join(sorted(plan.kept))
        parts.append(
            Text(f"Removed from the project, but kept: {names}. To delete: tidemark drop NAME")
        )
    parts.append(Text(""))
    parts.append(Text(plan.summary))
    return Group(*parts)


def changes_table(plan: Plan) -> FittedTable:
    """A row per change; a sign before its name says whether it comes, differs or goes."""
    base = "nothing was applied yet" if plan.base is None else f"against {plan.base}"
    table = FittedTable(
        "declaration",
        Column("class", no_wrap=True),
        "what happens",
        title=f"Plan for {plan.project}, {base}",
    )
    for change in plan.changes:
        sign, style = _SIGNS[change.action]
        table.add_row(
            Text.assemble((sign, style), " ", _name(change)),
            Text(change.category.value, style=_STYLES[change.category]),
            _happens(change),
        )
    return table


def step_lines(plan: Plan) -> list[str]:
    """The steps in order; many of one kind share one line."""
    lines: list[str] = []
    for kind, group in groupby(plan.steps, key=lambda one: one.kind):
        steps = list(group)
        if len(steps) <= _LISTED:
            lines += [one.title for one in steps]
        else:
            first = ", ".join(one.subject for one in steps[:2])
            lines.append(f"{kind.value}: {len(steps)} of them, {first}, …")
    return lines


def _name(change: Change) -> str:
    layered = change.kind in {Kind.SILVER, Kind.GOLD}
    return change.name if layered else f"{change.kind.value} {change.name}"


def _happens(change: Change) -> Text:
    text = Text("; ".join(one.value for one in change.work if one is not Work.NOTHING) or "nothing")
    for line in _lines(change):
        text.append(f"\n{line}", style="dim")
    return text


def _lines(change: Change) -> Iterator[str]:
    yield from change.details
    if change.cost.text:
        yield change.cost.text
    if change.reaches:
        yield f"reaches {_some(change.reaches)}"
    if change.untouched:
        yield f"leaves alone {_some(change.untouched)}"


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown

"""Renders an explained plan for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from spark_jobs.planning.decision import ReasonCode
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.gold.explain.explanation import Explanation
    from spark_jobs.planning.changes import InputChange
    from spark_jobs.planning.plan import Estimate, RefreshPlan

_STYLES = {"skip": "dim", "full": "yellow", "incremental": "green"}


def explanation(found: Explanation) -> RenderableType:
    """The explanation of a view: decision, strategy, inputs, estimates, operators."""
    plan = found.plan
    title = Text.assemble((f"gold.{plan.view}", "bold"), ": ", (plan.word, _STYLES[plan.word]))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(found):
        facts.add_row(f"  {name}", Text(value))
    parts: list[RenderableType] = [title, facts]
    if found.maintenance.operators:
        operators = Table(box=None, padding=(0, 2), header_style="dim")
        operators.add_column("operator", overflow="fold", ratio=3)
        operators.add_column("maintenance", overflow="fold", ratio=2)
        for one in found.maintenance.operators:
            operators.add_row(Text(one.operator), Text(one.rule))
        parts += [Text(""), operators]
        parts += [
            Text(f"  note: {one.note}", style="yellow")
            for one in found.maintenance.operators
            if one.note is not None
        ]
    return Group(*parts, Text(""))


def _facts(found: Explanation) -> Iterator[tuple[str, str]]:
    from spark_jobs.gold.explain.explanation import strategy_words

    plan, maintenance = found.plan, found.maintenance
    yield "reason", f"{plan.reason.text} ({plan.reason.code})"
    yield "strategy", found.entry.strategy.value
    yield "maintenance", strategy_words(found.entry)
    yield "computed by", found.engine
    if maintenance.obstacle is not None:
        yield "obstacle", f"{maintenance.detail} ({maintenance.obstacle})"
        yield "where", found.place or found.entry.file
        yield "what helps", maintenance.suggestion or ""
    elif maintenance.rule.value != "full":
        yield (
            "unique key",
            ", ".join(maintenance.key) or "none known: rows are matched as a multiset",
        )
    yield "reads", "\n".join(map(_read, plan.changes)) or "no table"
    for groups in found.states:
        version = "not written yet" if groups.version is None else f"@{groups.version.version}"
        columns = ", ".join(f"{name} = {value}" for name, value in groups.columns)
        yield "keeps", f"{groups.name} {version}: {columns}"
    yield "writes", _written(found)
    expected = found.plan.expected
    if maintenance.rule.value != "full":
        amount = _amount(found.incremental, "changed row")
        yield "incremental", amount + _seconds(expected.incremental)
    yield "full", _amount(found.full, "row") + _seconds(expected.full)
    if found.deprecated:
        yield "deprecated", "\n".join(f"{name}: {gone.notice}" for name, gone in found.deprecated)


def _read(change: InputChange) -> str:
    rows, total = change.movement.rows, change.movement.total
    words = [str(change), change.kind.value]
    if change.kind.value == "changed":
        words.append(_rows(rows))
        words += [f"of {total:,}"] if total is not None else []
        words += [] if change.movement.fed else ["without a change feed"]
    return " ".join(words)


def _written(found: Explanation) -> str:
    view = f"gold.{found.plan.view}"
    if found.published is None:
        return f"nothing: there is no {view}" if found.plan.skips else f"{view} for the first time"
    version, size = found.published
    before = f"{view}@{version}, {_rows(size.rows)}, {size.bytes:,} bytes"
    words = {
        "skip": "stays",
        "full": "is overwritten",
        "incremental": "deletes and inserts the rows that differ",
    }
    return f"{before}; {words[found.plan.word]}"


def _amount(estimate: Estimate | None, what: str) -> str:
    if estimate is None:
        return "not known"
    return f"{_rows(estimate.rows, what)} of the inputs, about {estimate.bytes:,} bytes"


def _seconds(expected: float | None) -> str:
    """The expected duration, if the cost model has samples."""
    return "" if expected is None else f", some {expected:.1f} s as before"


def _rows(count: int | None, what: str = "row") -> str:
    if count is None:
        return f"? {what}s"
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def plans_table(plans: list[RefreshPlan], *, strategies: Mapping[str, str]) -> FittedTable:
    """A row per view: the decision, the maintenance strategy, and the reason, in few words.

    The reason leaves out what the row says already, and the versions of inputs without a change.

    Args:
        plans: plan of each view.
        strategies: maintenance strategy of each view, as text, by view.
    """
    table = FittedTable(plain=True)
    for name in ("view", "decision", "strategy", "reason"):
        table.add_column(name)
    for plan in plans:
        strategy, reason = strategies[plan.view], plan.reason.text
        if plan.reason.code is ReasonCode.NO_UPSTREAM_CHANGE:
            reason = reason.partition(" since ")[0]
        words = (plan.view, plan.word, strategy, reason.removesuffix(f"; {strategy}"))
        table.add_row(*map(Text, words), style="dim" if plan.skips else "")
    return table

"""Tables of ``tidemark replay`` for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.planning.replay import ReplayPlan
    from spark_jobs.state.attempts import RefreshAttempt
    from spark_jobs.state.replays import ReplayRecord, ReplayView

STYLES = {"done": "green", "published": "green", "failed": "red", "skipped": "dim"}


def plan_table(plan: ReplayPlan) -> Table:
    """A row per view, in the order of processing."""
    table = FittedTable(title="plan", caption=_afterwards(plan))
    table.add_column("view", no_wrap=True)
    for name in ("decision", "at versions"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "reads", "pieces"):
        table.add_column(name, justify="right")
    table.add_column("conflicts", overflow="fold")
    for one in plan.views:
        table.add_row(
            one.view,
            one.refresh.line,
            str(one.refresh.vector),
            _count(one.rows),
            _count(one.reads),
            str(one.pieces),
            Text("; ".join(one.in_the_way), style="yellow"),
        )
    return table


def replays_table(found: Sequence[ReplayRecord]) -> Table:
    """A row per replay or rollback, newest first."""
    table = FittedTable(title="replays and rollbacks")
    table.add_column("id", no_wrap=True)
    for name in ("status", "who", "views", "approved by", "reason", "ticket", "started"):
        table.add_column(name, overflow="fold")
    for one in found:
        table.add_row(
            one.replay_id,
            _word(one.status.value),
            Text(one.who),
            ", ".join(one.request["views"]),
            Text(one.approved_by or ""),
            Text(one.reason),
            Text(one.ticket or ""),
            f"{one.started_at:%Y-%m-%d %H:%M:%S} UTC",
        )
    return table


def progress_table(
    record: ReplayRecord,
    rows: Sequence[ReplayView],
    attempts: Mapping[str, RefreshAttempt | None],
) -> Table:
    """A row per view of a replay.

    Args:
        record: the replay.
        rows: its views.
        attempts: their attempts by view; None: not begun.
    """
    table = FittedTable(
        title=Text(f"{record.replay_id}: {record.status}, {record.who}: {record.reason}"),
        caption=Text("\n".join(map(_decision, record.decisions))) if record.decisions else None,
    )
    table.add_column("view", no_wrap=True)
    for name in ("status", "decision"):
        table.add_column(name, overflow="fold")
    for name in ("pieces", "deleted", "inserted", "version"):
        table.add_column(name, justify="right")
    table.add_column("error", overflow="fold")
    for one in rows:
        attempt = attempts.get(one.view)
        done = ((attempt and attempt.actual) or {}).get("pieces")
        difference = one.difference or {}
        table.add_row(
            one.view,
            _word(one.status.value),
            (attempt and attempt.reason) or "",
            "" if done is None else f"{done[0]}/{done[1]}",
            _count(difference.get("leaving"), unknown=""),
            _count(difference.get("entering"), unknown=""),
            "" if one.published_version is None else str(one.published_version),
            one.error or "",
        )
    return table


def _decision(one: Mapping[str, Any]) -> str:
    """Who decided what, when and why."""
    parts = [f"{one['what']} by {one['who']} at {one['at'][:19].replace('T', ' ')} UTC"]
    parts += [f"approved by {one['approved_by']}"] if one["approved_by"] else []
    parts += [f"({one['ticket']})"] if one["ticket"] else []
    return ", ".join(parts) + (f": {one['reason']}" if one["reason"] else "")


def _afterwards(plan: ReplayPlan) -> str | None:
    notes = []
    if plan.left_out:
        notes.append(f"Not stale, left out: {', '.join(plan.left_out)}.")
    if plan.followers:
        notes.append(f"Refreshed afterwards: {', '.join(plan.followers)}.")
    return " ".join(notes) or None


def _count(number: int | None, *, unknown: str = "unknown") -> str:
    return unknown if number is None else f"{number:,}"


def _word(word: str) -> Text:
    return Text(word, style=STYLES.get(word, ""))

"""The last attempts to refresh a gold view, as rows of text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from spark_jobs.serving.page.facts import NOTHING
from spark_jobs.serving.report.status_tables import ago, decision_text, verdict_cell

if TYPE_CHECKING:
    from spark_jobs.state.attempts import RefreshAttempt
    from spark_jobs.state.store import ControlStore

SHOWN: Final = 10
HEADS: Final = ("started", "status", "decision and reason", "rows", "seconds", "version", "audit")


def history(store: ControlStore, view: str, *, now: datetime) -> tuple[tuple[str, ...], ...]:
    """A row for each of the newest attempts that did more than to find nothing to do."""
    from spark_jobs.state.attempts import AttemptStatus

    did = tuple(one for one in AttemptStatus if one is not AttemptStatus.SKIPPED)
    found = store.attempts(view, statuses=did, limit=SHOWN)
    return tuple(_row(one, now=now) for one in found)


def _row(attempt: RefreshAttempt, *, now: datetime) -> tuple[str, ...]:
    actual = attempt.actual or {}
    rows, seconds = actual.get("rows"), sum((actual.get("seconds") or {}).values())
    version = attempt.published_version
    return (
        f"{attempt.started_at:%Y-%m-%d %H:%M} UTC, {ago(attempt.started_at, now=now)}",
        attempt.status.value,
        decision_text(attempt),
        NOTHING if rows is None else f"{rows:,}",
        f"{seconds:.1f}" if seconds else NOTHING,
        NOTHING if version is None else str(version),
        verdict_cell(attempt.verdict).plain or NOTHING,
    )

"""Tables of ``tidemark status`` for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from spark_jobs.names import strategy_words
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.gold.base.freshness import ViewStatus
    from spark_jobs.serving.report.batches_in_work import BatchInWork
    from spark_jobs.silver.check.quarantine import Rejection
    from spark_jobs.state.attempts import RefreshAttempt
    from spark_jobs.state.progress import StreamProgress

# Queries report with every batch and while idle; a longer silence means that one is down.
SILENT_AFTER: Final = timedelta(seconds=60)

STYLES: Final = {
    "current": "green",
    "behind": "",
    "late": "red",
    "unpublished": "yellow",
    "published": "green",
    "skipped": "dim",
    "blocked": "red",
    "released": "yellow",
    "failed": "red",
    "superseded": "dim",
    "passed": "green",
    "warned": "yellow",
    "running": "green",
    "refused": "red",
    "silent": "red",
    "down": "red",
}


def views_table(views: Sequence[ViewStatus], *, now: datetime) -> Table:
    """A row per gold view; below its name the refresh policy."""
    table = FittedTable(title="gold views")
    table.add_column("view", no_wrap=True)
    for name in ("published", "freshness", "last attempt", "verdict"):
        table.add_column(name, overflow="fold")
    for one in views:
        table.add_row(
            Text(one.view).append(f"\n{one.policy}", style="dim"),
            published_cell(one, now=now),
            freshness_cell(one),
            attempt_cell(one),
            verdict_cell(one.verdict),
        )
    return table


def published_cell(status: ViewStatus, *, now: datetime) -> Text:
    """Time, version and maintenance strategy of the publication."""
    if status.published_at is None:
        return Text("never", style="yellow")
    words = "" if status.rule is None else strategy_words(status.rule)
    cell = Text(ago(status.published_at, now=now))
    return cell.append(f" @{status.published_version} {words}", style="dim")


def freshness_cell(status: ViewStatus) -> Text:
    """How far behind, and the declared freshness."""
    cell = _styled(status.freshness.value)
    if status.behind:
        cell.append(f" {duration(status.behind)}")
    if status.target is not None:
        cell.append(f" (target {duration(status.target)})", style="dim")
    return cell


def attempt_cell(status: ViewStatus) -> Text:
    """The last decision and its reason, preceded by blocked or waiting."""
    cell = Text()
    if status.pinned is not None:
        where = f"rolled back to version {status.pinned.version}, pinned"
        cell.append(where, style="red").append(f" by {status.pinned.who}; ")
    if status.blocked:
        cell.append("blocked", style="red").append("; ")
    if status.waits:
        cell.append("waits", style="red").append("; ")
    last = status.last
    if last is None:
        return cell.append("none", style="dim")
    if not (status.blocked and last.status == "blocked"):
        cell.append_text(_styled(last.status.value)).append("; ")
    return cell.append(decision_text(last))


def decision_text(attempt: RefreshAttempt) -> str:
    """The decision, the maintenance strategy if there is one, and the reason."""
    rule = "" if attempt.rule is None else f" ({strategy_words(attempt.rule)})"
    return f"{attempt.decision}{rule}: {attempt.reason}"


def verdict_cell(verdict: dict[str, Any] | None) -> Text:
    """The outcome, and the number of passed expectations; empty without a verdict.

    Args:
        verdict: as stored in the ledger; ``outcome``, ``expectations`` and ``failed`` are read.
    """
    if verdict is None:
        return Text()
    total = verdict["expectations"]
    return _styled(verdict["outcome"]).append(f" {total - verdict['failed']}/{total}")


def streams_table(
    streams: Sequence[StreamProgress],
    *,
    now: datetime,
    on_purpose: bool = False,
    in_work: Mapping[str, BatchInWork] | None = None,
) -> Table:
    """A row per streaming query.

    Args:
        streams: reports of the queries.
        now: the current time.
        on_purpose: whether a person stopped the application.
        in_work: unfinished batches, by query.
    """
    table = FittedTable(title="streams")
    for name in ("query", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("behind", "in work", "last batch", "records", "ended", "seen"):
        table.add_column(name, justify="right")
    table.add_column("error", overflow="fold")
    for one in streams:
        table.add_row(
            one.query,
            _styled(one.health(now=now, after=SILENT_AFTER, on_purpose=on_purpose)),
            "" if one.lag_records is None else f"{one.lag_records:,} records",
            in_work_text((in_work or {}).get(one.query), now=now),
            "" if one.batch_id < 0 else str(one.batch_id),
            "" if one.batch_id < 0 else f"{one.records:,}",
            "" if one.batch_id < 0 else ago(one.at, now=now),
            ago(one.heartbeat_at, now=now),
            Text(one.error or ""),
        )
    return table


def in_work_text(batch: BatchInWork | None, *, now: datetime) -> str:
    """Size of the batch, and since when it runs."""
    if batch is None:
        return ""
    what = f"batch {batch.number}" if batch.records is None else f"{batch.records:,} records"
    return what if batch.since is None else f"{what}, {duration(now - batch.since)}"


def history_table(attempts: Sequence[RefreshAttempt], *, now: datetime) -> Table:
    """A row per attempt, newest first."""
    table = FittedTable(title="attempts")
    for name in ("started", "tick", "status", "decision and reason"):
        table.add_column(name, overflow="fold")
    for name in ("rows", "seconds", "version"):
        table.add_column(name, justify="right")
    for name in ("verdict", "remark"):
        table.add_column(name, overflow="fold")
    for one in attempts:
        actual = one.actual or {}
        rows, seconds = actual.get("rows"), actual.get("seconds") or {}
        table.add_row(
            ago(one.started_at, now=now),
            one.tick,
            _styled(one.status.value),
            Text(decision_text(one)),
            "" if rows is None else f"{rows:,}",
            f"{sum(seconds.values()):.1f}" if seconds else "",
            "" if one.published_version is None else str(one.published_version),
            verdict_cell(one.verdict),
            Text(_remark(one)),
        )
    return table


def _remark(attempt: RefreshAttempt) -> str:
    """The error; or who released the result, why, and past which rules."""
    verdict = attempt.verdict or {}
    if attempt.error is not None or "released_by" not in verdict:
        return (attempt.error or "").partition("\n")[0]
    agreed = verdict.get("approved_by")
    who = f"{verdict['released_by']}, approved by {agreed}" if agreed else verdict["released_by"]
    because = f"{who}: {verdict['release_reason']}"
    return f"released by {because} ({verdict['released_rules']} failed)"


def ago(at: datetime, *, now: datetime) -> str:
    """The time since a timestamp as text.

    >>> from datetime import UTC, datetime
    >>> ago(datetime(2024, 1, 1, tzinfo=UTC), now=datetime(2024, 1, 1, 1, 30, tzinfo=UTC))
    '1 h 30 min ago'
    """
    return f"{duration(now - at)} ago"


def duration(span: timedelta) -> str:
    """A duration in its two largest units; none if it ends before it begins.

    Clocks of other machines may be ahead, and something may begin while a page is read.

    >>> duration(timedelta(seconds=42)), duration(timedelta(days=3, minutes=10))
    ('42 s', '3 d')
    >>> duration(timedelta(seconds=-1))
    '0 s'
    """
    seconds = max(0, int(span.total_seconds()))
    parts = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        parts.append((count, unit))
    first = next((at for at, (count, _) in enumerate(parts) if count), len(parts) - 1)
    shown = [f"{count} {unit}" for count, unit in parts[first : first + 2] if count]
    return " ".join(shown) or "0 s"


def _styled(word: str) -> Text:
    return Text(word, style=STYLES.get(word, ""))


def rejections_table(found: list[Rejection]) -> Table:
    """A row per silver table and reason."""
    table = FittedTable(title="Records in quarantine")
    table.add_column("silver table", no_wrap=True)
    table.add_column("reason", no_wrap=True)
    table.add_column("records", justify="right")
    table.add_column("latest arrival")
    for one in found:
        arrival = f"{one.latest_arrival:%Y-%m-%d %H:%M:%S} UTC"
        table.add_row(one.silver, one.reason, f"{one.records:,}", arrival)
    return table

"""A gold view's documentation in Airflow, as Markdown, from the manifest."""

from __future__ import annotations

from spark_jobs.definitions.schedules import DAY, HOUR, MINUTE
from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.graph.manifest import Column, GoldEntry
from spark_jobs.planning.ranges import DATE, time_column

RUNBOOK = "docs/runbooks/gold-refresh.md"


def view_documentation(
    entry: GoldEntry, cron: str | None, delay: int = 0, *, backfill_days: bool = False
) -> str:
    """The documentation of a view's DAG."""
    sections = [
        f"## {entry.table_name}\n\n{entry.description.strip()}",
        f"**Owner**: {entry.owner}. **Declared in**: `{entry.file}`.",
        f"{_refresh(entry, cron, delay)}\n{_backfill(entry, by_days=backfill_days)}",
        _columns(entry.columns),
        _lineage(entry),
        f"### SQL\n\n```sql\n{entry.sql.strip()}\n```",
        _trouble(),
    ]
    return "\n\n".join(sections) + "\n"


def verification_documentation(entry: GoldEntry) -> str:
    """The documentation of the DAG that compares a view with its SQL."""
    return (
        f"## Does {entry.table_name} equal its SQL?\n\n"
        "Each run puts the rows of the newest publication, and those of the view's SQL at the "
        "same input versions, into buckets by a hash, and compares some buckets, different ones "
        "each time. A small table is compared whole. Nothing is changed.\n\n"
        "If rows differ, see `docs/runbooks/gold-is-wrong.md`.\n\n"
        f"**Owner**: {entry.owner}. **Declared in**: `{entry.file}`.\n\n{_trouble()}\n"
    )


def duration(seconds: int) -> str:
    """A period in words.

    >>> duration(900), duration(3600), duration(90)
    ('15 minutes', '1 hour', '90 seconds')
    """
    for size, word in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {word}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _refresh(entry: GoldEntry, cron: str | None, delay: int) -> str:
    lines = ["### How it is refreshed", ""]
    if entry.schedule is not None:
        lines.append(f"By the schedule `{entry.schedule}`, {entry.time_zone}.")
    elif entry.refresh is not RefreshPolicy.CONTINUOUS and entry.every_seconds is not None:
        later = f", {duration(delay)} after the end of each interval" if delay else ""
        lines.append(f"Every {duration(entry.every_seconds)} (`{cron}`, UTC){later}.")
    elif entry.refresh is RefreshPolicy.CONTINUOUS:
        lines.append(
            "By the streaming application, as soon as its inputs change; `tidemark status` shows "
            "its state. You can also run this DAG at any time."
        )
    else:
        lines.append("Only when you trigger it.")
    if entry.freshness_seconds is not None:
        lines.append(f"Freshness target: {duration(entry.freshness_seconds)}.")
    lines.append(
        "A run skips if no input changed. A failed critical expectation blocks the publication; "
        "readers see the old content until a run succeeds."
    )
    return "\n".join(lines)


def _backfill(entry: GoldEntry, *, by_days: bool) -> str:
    column = time_column(entry)
    if column is None:
        return (
            "No backfill: the view has no time column. The DAG `ops__replay` recomputes the whole "
            "view."
        )
    if by_days:
        return (
            f"A backfill recomputes the rows whose `{column.name}` lies in its days (UTC), one run "
            "for each that has ended, and replaces those that differ; no other row changes."
        )
    days = ", whole days," if column.type == DATE else ""
    return (
        f"A backfill recomputes the rows whose `{column.name}` is in its intervals{days} and "
        "replaces those that differ; no other row changes."
    )


def _columns(columns: tuple[Column, ...]) -> str:
    rows = [
        f"| `{column.name}` | {column.type} | {_cell(column.meaning or '')} |" for column in columns
    ]
    return "\n".join(["### Columns", "", "| name | type | |", "|---|---|---|", *rows])


def _lineage(entry: GoldEntry) -> str:
    inputs = ", ".join(f"`{name}`" for name in entry.inputs)
    readers = ", ".join(f"`gold.{name}`" for name in entry.downstream) or "no other gold view"
    return f"### Lineage\n\nReads {inputs}. Read by {readers}."


def _trouble() -> str:
    return (
        "### When a run fails\n\nThe log of the failed task names the condition and what to do; "
        f"`{RUNBOOK}` explains each. The published table keeps its last good content."
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")

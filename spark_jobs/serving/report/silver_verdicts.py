"""Verdicts on the batches of silver tables, for ``tidemark status``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rich.table import Table
from rich.text import Text

from spark_jobs.serving.report.status_tables import STYLES, ago
from spark_jobs.terminal.tables import FittedTable

if TYPE_CHECKING:
    from spark_jobs.serving.project import OpenProject
    from spark_jobs.state.batches import JudgedBatches, SilverBatch

# How far back failed batches are counted.
SHOWN_BACK: Final = timedelta(days=1)


def silver_verdicts(project: OpenProject, *, now: datetime) -> list[JudgedBatches]:
    """What the suites of the silver tables found in the last day, by table."""
    since = now - SHOWN_BACK
    found = (
        project.store.judged_batches(name, since=since)
        for name, entry in sorted(project.manifest.silver.items())
        if entry.suite is not None
    )
    return [one for one in found if one is not None]


def silver_verdicts_table(found: Sequence[JudgedBatches], *, now: datetime) -> Table:
    """A row per silver table with a suite."""
    table = FittedTable(title="batches of silver tables, last 24 hours")
    table.add_column("silver table", no_wrap=True)
    table.add_column("last verdict", overflow="fold")
    table.add_column("failed", justify="right")
    table.add_column("what failed last", overflow="fold")
    for one in found:
        table.add_row(
            one.last.silver,
            _last(one.last, now=now),
            f"{one.failed:,} of {one.judged:,}",
            "" if one.failing is None else _failures(one.failing, now=now),
        )
    return table


def _last(batch: SilverBatch, *, now: datetime) -> Text:
    verdict: dict[str, Any] = batch.verdict or {}
    total, failed = verdict.get("expectations", 0), verdict.get("failed", 0)
    word = batch.outcome or ""
    return Text(word, style=STYLES.get(word, "")).append(
        f" {total - failed}/{total}, {ago(batch.at, now=now)}", style="dim"
    )


def _failures(batch: SilverBatch, *, now: datetime) -> Text:
    verdict: dict[str, Any] = batch.verdict or {}
    text = "; ".join(one["message"] for one in verdict.get("results", ()))
    when = f" (batch {batch.batch_id}, {ago(batch.at, now=now)})"
    return Text(text).append(when, style="dim")

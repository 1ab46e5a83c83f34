"""What one DAG run asks for: its tick, whether all is recomputed, or which range of rows is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from spark_jobs.planning.ranges import TimeRange


class RunKind(StrEnum):
    """Who made a DAG run; the values are Airflow's."""

    SCHEDULED = "scheduled"
    BACKFILL = "backfill"
    MANUAL = "manual"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_TRIGGERED = "asset_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"


@dataclass(frozen=True)
class RunScope:
    """What a run asks the refresh for.

    Attributes:
        tick: all views that are refreshed under one tick read the same input versions.
        force: compute the whole result, even when nothing moved.
        asked: a person asked for the run, by triggering or by clearing it.
        time: compute the rows of this range again, and no others; None: what a refresh finds.
    """

    tick: str
    force: bool = False
    asked: bool = False
    time: TimeRange | None = None


def run_scope(
    *,
    kind: RunKind,
    run_id: str,
    data_interval_end: datetime | None,
    data_interval_start: datetime | None = None,
    clear_number: int = 0,
    force: bool = False,
) -> RunScope:
    """The one rule for every kind of run.

    A scheduled or backfill run's tick is the end of its interval, which the views of one moment
    share however their starts are spread. Every other run has no interval of its own (Airflow
    infers one that another run already used), so it is a tick by itself. A run that was cleared
    asks again: under its first tick it would see the versions that were pinned then.

    A backfill's interval is the range that it recomputes. Every other run's interval says when it
    runs and nothing about rows: a refresh takes up each change, however old the rows are.

    Args:
        kind: as Airflow's ``run_type``.
        run_id: unique within a DAG.
        data_interval_end: None where the run has no logical date.
        data_interval_start: the same.
        clear_number: how often the run was cleared.
        force: what the person who triggered the run asked for.
    """
    shared = kind in {RunKind.SCHEDULED, RunKind.BACKFILL}
    name = _instant(data_interval_end) if shared and data_interval_end is not None else run_id
    tick = f"{name}+{clear_number}" if clear_number else name
    if kind is not RunKind.BACKFILL:
        return RunScope(tick=tick, force=force, asked=kind is RunKind.MANUAL or clear_number > 0)
    if data_interval_start is None or data_interval_end is None:
        return RunScope(tick=tick, force=True)
    return RunScope(tick=tick, time=TimeRange(data_interval_start, data_interval_end))


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

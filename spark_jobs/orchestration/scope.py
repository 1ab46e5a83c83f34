"""What one DAG run asks for: which tick its input versions belong to, and whether to recompute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum


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
    """

    tick: str
    force: bool


def run_scope(
    *,
    kind: RunKind,
    run_id: str,
    data_interval_end: datetime | None,
    clear_number: int = 0,
    force: bool = False,
) -> RunScope:
    """The one rule for every kind of run.

    A scheduled or backfill run's tick is the end of its interval, which the views of one moment
    share however their starts are spread. Every other run has no interval of its own (Airflow
    infers one that another run already used), so it is a tick by itself. A run that was cleared
    asks anew: under its first tick it would see the versions that were pinned then.

    Args:
        kind: as Airflow's ``run_type``.
        run_id: unique within a DAG.
        data_interval_end: None where the run has no logical date.
        clear_number: how often the run was cleared.
        force: what the person who triggered the run asked for.
    """
    shared = kind in {RunKind.SCHEDULED, RunKind.BACKFILL}
    name = _instant(data_interval_end) if shared and data_interval_end is not None else run_id
    tick = f"{name}+{clear_number}" if clear_number else name
    return RunScope(tick=tick, force=force or kind is RunKind.BACKFILL)


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

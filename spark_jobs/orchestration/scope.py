"""What a DAG run requests: its tick, and a full recomputation or one of a range of rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from spark_jobs.planning.ranges import TimeRange


class RunKind(StrEnum):
    """What created a DAG run; the values are Airflow's."""

    SCHEDULED = "scheduled"
    BACKFILL = "backfill"
    MANUAL = "manual"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_TRIGGERED = "asset_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"


@dataclass(frozen=True)
class RunScope:
    """What a run requests of the refresh.

    Attributes:
        tick: views that are refreshed in the same tick read the same input versions.
        force: recompute the whole result, even if no input changed.
        asked: a person triggered or cleared the run.
        time: recompute only the rows of this range; None: a normal refresh.
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
    """The scope of a run of any kind.

    A scheduled or backfill run's tick is the end of its interval, which the views of one moment
    share however their starts are spread. Other runs have no interval of their own (Airflow
    infers one that another run already used), so each is a tick by itself. A cleared run gets a
    new tick: in its first one it would see the versions that were pinned then.

    A backfill's interval is the range that it recomputes. The interval of other runs only says when
    they run: a refresh processes all changes, however old the rows are.

    Args:
        kind: as Airflow's ``run_type``.
        run_id: unique within a DAG.
        data_interval_end: None if the run has no logical date.
        data_interval_start: likewise.
        clear_number: how often the run was cleared.
        force: as chosen by the person who triggered the run.
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

"""The last step of a refresh, by its decision and the view's key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.graph.last_step import DeleteInsert, LastStep, MergeByKey, Overwrite
from spark_jobs.graph.manifest import Maintenance, MaintenanceStrategy
from spark_jobs.planning.decision import (
    Decision,
    Full,
    Incremental,
    Promotion,
    Range,
    Reason,
    ReasonCode,
    Rollback,
    Skip,
)
from spark_jobs.planning.last_step import last_step
from spark_jobs.planning.ranges import RowRange, TimeRange

WHY = Reason(ReasonCode.FORCED, "a person asked for it")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ROWS = RowRange(column="day", type="date", time=TimeRange(NOON, NOON + timedelta(days=3)))
KEYED = Maintenance(rule=MaintenanceStrategy.ROW_DELTAS, key=("id", "day"))
UNKEYED = Maintenance(rule=MaintenanceStrategy.ROW_DELTAS)
CHANGED = Incremental(WHY, "row_deltas")


@pytest.mark.parametrize(
    ("decision", "maintenance", "step"),
    [
        (CHANGED, KEYED, MergeByKey(("id", "day"))),
        (CHANGED, UNKEYED, DeleteInsert()),
        (CHANGED, None, DeleteInsert()),
        (Range(WHY, ROWS), KEYED, DeleteInsert()),
        (Full(WHY), KEYED, Overwrite()),
        (Full(WHY, ("amount",)), KEYED, Overwrite()),
        (Rollback(WHY, 3), KEYED, Overwrite()),
        (Promotion(WHY, "dev", 3), KEYED, Overwrite()),
    ],
)
def test_only_incremental_refreshes_use_the_key(
    decision: Decision, maintenance: Maintenance | None, step: LastStep
) -> None:
    assert last_step(decision, maintenance) == step


def test_a_skipped_refresh_has_no_last_step() -> None:
    with pytest.raises(ValueError, match="skipped"):
        last_step(Skip(WHY), KEYED)

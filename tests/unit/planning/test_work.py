"""A plan is written to the ledger and read back: what is executed is what was decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.names import TableName, TableVersion
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
    decision_of,
    decision_word,
    rule_of,
    scope_of,
)
from spark_jobs.planning.ranges import RowRange, TimeRange
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.work import covers_view, work_item
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.store import ControlStore

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
WHY = Reason(ReasonCode.FORCED, "a person asked for it")
ROWS = RowRange(
    column="day", type="date", time=TimeRange(NOON, NOON + timedelta(days=3)), piece=timedelta(1)
)
DECISIONS: tuple[Decision, ...] = (
    Skip(WHY),
    Full(WHY),
    Full(WHY, ("a", "b")),
    Incremental(WHY, "aggregate_state"),
    Range(WHY, ROWS),
    Rollback(WHY, 7),
)
VECTOR = VersionVector({TableName.parse("silver.orders"): TableVersion("id", 41)})


def attempt(decision: Decision) -> RefreshAttempt:
    return RefreshAttempt(
        attempt_id="a",
        view="totals",
        tick="t",
        decision=decision_word(decision),
        rule=rule_of(decision),
        scope=scope_of(decision),
        reason_code=decision.reason.code.value,
        reason=decision.reason.text,
        epoch=2,
        fingerprint="f",
        vector=VECTOR.as_dict(),
        estimate={"changed": 5},
        started_at=NOON,
        updated_at=NOON,
    )


@pytest.mark.parametrize("decision", DECISIONS, ids=decision_word)
def test_a_decision_survives_the_ledger(decision: Decision, tmp_path: Path) -> None:
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        store.migrate()
        work = work_item(store.create_attempt(attempt(decision)))
    assert work.decision == decision
    assert (work.vector, work.clock, work.changed) == (VECTOR, NOON, 5)
    assert (work.epoch, work.sequence) == (2, 1)


def test_only_a_refresh_of_all_rows_and_columns_covers_a_view() -> None:
    assert [covers_view(one) for one in DECISIONS] == [False, True, False, True, False, False]


@pytest.mark.parametrize(
    ("word", "scope"),
    [("", None), ("fuller", None), ("range", None), ("rollback", {"columns": ["a"]})],
)
def test_a_row_of_another_release_is_refused(word: str, scope: dict[str, object] | None) -> None:
    with pytest.raises(ValueError, match="is not a decision"):
        decision_of(word, reason=WHY, rule=None, scope=scope)


def test_an_attempt_of_an_older_release_has_no_rule() -> None:
    assert decision_of("incremental", reason=WHY, rule=None, scope=None) == Incremental(
        WHY, "incremental"
    )


@pytest.mark.parametrize("decision", [Rollback(WHY, 7, NOON), Promotion(WHY, "dev", 3, NOON)])
def test_rows_that_are_published_again_keep_their_clock(decision: Decision, tmp_path: Path) -> None:
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        later = NOON + timedelta(hours=1)
        newer = replace(attempt(Full(WHY)), attempt_id="b", started_at=later, updated_at=later)
        store.create_attempt(newer)
        found = work_item(store.create_attempt(attempt(decision)))
    assert (found.decision, found.clock) == (decision, NOON)

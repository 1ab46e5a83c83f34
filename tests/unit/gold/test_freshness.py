"""How a view stands, from its attempts in the ledger."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.freshness import view_status
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from tests.unit.gold.conftest import NOON

BLOCKED = {"status": AttemptStatus.BLOCKED, "decision": "incremental"}
FOLLOWED = {"status": AttemptStatus.PUBLISHED, "decision": "incremental"}
BACKFILLED = {
    "status": AttemptStatus.PUBLISHED,
    "decision": "full",
    "reason_code": "BACKFILLED",
    "scope": {"column": "day", "from": "2026-01-01", "to": "2026-01-02"},
}
REPLAYED = {"status": AttemptStatus.PUBLISHED, "decision": "full", "reason_code": "REPLAYED"}


@pytest.mark.parametrize(
    ("attempts", "blocked"),
    [
        ([BLOCKED], True),
        ([BLOCKED, FOLLOWED], False),
        ([BLOCKED, BACKFILLED], True),
        ([BLOCKED, REPLAYED], True),
        ([BLOCKED, BACKFILLED, FOLLOWED], False),
        ([FOLLOWED, BLOCKED, BACKFILLED], True),
        ([BACKFILLED], False),
        ([BLOCKED, {**BACKFILLED, "status": AttemptStatus.BLOCKED}], True),
        ([FOLLOWED, {**BACKFILLED, "status": AttemptStatus.BLOCKED}], True),
    ],
)
def test_a_backfill_does_not_hide_that_a_newer_result_is_blocked(
    context: GoldContext, attempts: list[dict[str, Any]], *, blocked: bool
) -> None:
    for number, facts in enumerate(attempts):
        at = NOON + timedelta(minutes=number)
        row = {"reason_code": "INPUT_CHANGED_RULE", **facts}
        context.store.create_attempt(
            RefreshAttempt(
                attempt_id=f"a{number}",
                view="spend",
                tick=f"t{number}",
                epoch=1,
                started_at=at,
                updated_at=at,
                **row,
            )
        )
    assert view_status(context, "spend", now=NOON).blocked is blocked

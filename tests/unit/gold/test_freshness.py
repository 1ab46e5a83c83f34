"""How a view stands, from its attempts in the ledger."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from deltalake import write_deltalake

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.freshness import behind_since, view_status
from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.storage import log
from tests.unit.gold.conftest import NOON, Shop

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


def test_a_compaction_is_not_the_change_that_a_view_lacks(shop: Shop) -> None:
    orders = str(shop.project / "data" / "orders")
    more = shop.orders.to_pyarrow_table().slice(0, 1)
    write_deltalake(orders, more, mode="append")
    shop.publish("notes")
    shop.orders.optimize.compact()
    published = latest_publication(shop.context.published_at("notes"))
    assert published is not None
    assert behind_since(shop.context, published) is None
    write_deltalake(orders, more, mode="append")
    assert behind_since(shop.context, published) == log.committed_at(orders, 3)

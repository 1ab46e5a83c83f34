"""A full refresh that only the cold first build has measured is tried once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage.compiled import compile_settings
from tests.unit.gold.conftest import FED, Shop

SQL = "SELECT o.user_id, SUM(o.amount) AS total FROM bronze.orders AS o GROUP BY o.user_id"


def end(refresher: Refresher, plan: RefreshPlan, seconds: float | None) -> None:
    """Record that a plan was published after these seconds; None: that it failed."""
    change: Any = {"status": AttemptStatus.FAILED, "error": "stage: out of memory"}
    if seconds is not None:
        actual = {"seconds": {"stage": seconds, "publish": 0.0}}
        change = {"status": AttemptStatus.PUBLISHED, "actual": actual}
    ledger.end_attempt(refresher.context, plan.attempt_id, **change)


@pytest.fixture
def refresher(shop: Shop) -> Refresher:
    """A project whose view was built in 9 seconds, and followed changes in 4 seconds each."""
    rows = pa.table({"user_id": pa.array(range(100_000), pa.int64()), "amount": [1] * 100_000})
    orders = shop.project / "data" / "amounts"
    write_deltalake(orders, rows, configuration=FED)
    (shop.project / "sources" / "amounts.yml").write_text("format: delta\nlocation: data/amounts\n")
    file = shop.project / "sql" / "gold" / "spent.sql"
    head = "description: d\nowner: o\nrefresh: bulk"
    file.write_text(f"/* gold\n{head}\n*/\n{SQL.replace('orders', 'amounts')}\n")
    settings = load_settings(shop.project, state_dir=shop.project / "state")
    found = Refresher(settings, compile_settings(settings), shop.context.store)
    first = found.plan("spent", tick="t0")
    assert first.reason.code is ReasonCode.FIRST_BUILD
    end(found, first, 9.0)
    Shop(found.context, shop.project).publish("spent")
    write_deltalake(orders, rows.slice(0, 1), mode="append")
    for at in range(3):
        followed = found.plan("spent", tick=f"t1{at}")
        assert followed.word == "incremental"
        end(found, followed, 4.0)
    return found


def test_a_full_refresh_is_tried_after_a_cold_build_and_kept_if_it_is_faster(
    refresher: Refresher,
) -> None:
    plan = refresher.plan("spent", tick="t2")
    assert plan.reason.code is ReasonCode.FULL_IS_TRIED
    assert plan.reason.text.endswith(
        "a full refresh was measured only in the first build, 9.0 s with cold caches; it is tried "
        "once, because following the changes takes 4.0 s"
    )
    end(refresher, plan, 3.0)
    plan = refresher.plan("spent", tick="t3")
    assert plan.reason.code is ReasonCode.FULL_IS_FASTER
    assert "a full refresh takes some 3.0 s, following the changes 4.0 s" in plan.line


def test_a_full_refresh_that_is_slower_is_not_tried_again(refresher: Refresher) -> None:
    end(refresher, refresher.plan("spent", tick="t2"), 5.0)
    assert refresher.plan("spent", tick="t3").word == "incremental"


@pytest.mark.parametrize("ended", [True, False])
def test_a_try_that_did_not_come_to_its_end_is_not_repeated(
    refresher: Refresher, *, ended: bool
) -> None:
    """It may be too large for the machine; the view would stand still, or its process be killed."""
    plan = refresher.plan("spent", tick="t2")
    assert plan.word == "full"
    if ended:
        end(refresher, plan, None)
    plan = refresher.plan("spent", tick="t3")
    assert plan.reason.code is ReasonCode.INPUT_CHANGED_RULE

"""The size of a view's program decides on its first incremental refresh in Spark."""

from __future__ import annotations

import pytest
from deltalake import write_deltalake

from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.sections import Engine
from spark_jobs.settings import load_settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage.compiled import compile_settings
from tests.unit.gold.conftest import Shop

HEAD = "description: d\nowner: o\nrefresh: bulk"


def joined(tables: int) -> str:
    """A join of a table with itself."""
    others = (
        f"JOIN bronze.orders AS o{number} ON o{number}.order_id = o.order_id"
        for number in range(1, tables)
    )
    return f"SELECT o.order_id FROM bronze.orders AS o {' '.join(others)}"


def refresher(shop: Shop, *, tables: int, engine: Engine) -> Refresher:
    """A project whose view was published by a full refresh of one second, and has a change."""
    file = shop.project / "sql" / "gold" / "joined.sql"
    file.write_text(f"/* gold\n{HEAD}\n*/\n{joined(tables)}\n")
    settings = load_settings(
        shop.project, state_dir=shop.project / "state", gold={"engine": engine.value}
    )
    found = Refresher(settings, compile_settings(settings), shop.context.store)
    first = found.plan("joined", tick="t0")
    Shop(found.context, shop.project).publish("joined")
    ledger.end_attempt(
        found.context,
        first.attempt_id,
        status=AttemptStatus.PUBLISHED,
        actual={"seconds": {"stage": 0.6, "publish": 0.4}},
    )
    row = shop.orders.to_pyarrow_table().slice(0, 1)
    write_deltalake(shop.project / "data" / "orders", row, mode="append")
    return found


@pytest.mark.parametrize(
    ("tables", "engine", "word"),
    [
        (9, Engine.SPARK, "full"),
        (3, Engine.SPARK, "incremental"),
        (9, Engine.AUTO, "incremental"),
    ],
)
def test_a_large_program_over_small_tables_is_not_tried_first(
    shop: Shop, tables: int, engine: Engine, word: str
) -> None:
    plan = refresher(shop, tables=tables, engine=engine).plan("joined", tick="t1")
    assert plan.word == word
    if word == "full":
        assert plan.reason.code is ReasonCode.FULL_IS_FASTER
        assert "takes some 1.0 s, following the changes at least 1.8 s, because" in plan.reason.text

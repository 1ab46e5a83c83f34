"""The SQL that ``tidemark explain --sql`` prints, run as it is printed."""

from __future__ import annotations

from collections import Counter

import pytest

from spark_jobs.gold.explain.refresh_sql import refresh_sql
from tests.spark.gold_project import GoldProject

MORE = """SELECT o.order_id, o.customer, CAST(o.amount AS DECIMAL(12, 2)) AS amount
FROM VALUES (7L, 'ann', 1.00), (8L, 'eve', 2.00), (9L, NULL, 3.00)
AS o (order_id, customer, amount)"""
VIEWS = {
    "sums": "SELECT o.customer, COUNT(*) AS orders, SUM(o.amount) AS amount "
    "FROM silver.orders AS o GROUP BY o.customer",
    "largest": "SELECT o.customer, MAX(o.amount) AS amount "
    "FROM silver.orders AS o GROUP BY o.customer",
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_printed_sql_gives_the_rows_that_leave_and_enter(gold: GoldProject, name: str) -> None:
    gold.view(name, VIEWS[name], maintained=True)
    gold.refresh(name, "t0")
    for tick in ("t1", "t2"):
        gold.append("silver.orders", MORE)
        gold.execute("DELETE FROM {} WHERE order_id IN (1, 9)", "silver.orders")
        before = Counter(gold.rows(name))
        plan = gold.refresher.explain(name)
        *views, change = refresh_sql(gold.refresher.context, plan)
        assert plan.word == "incremental"
        for one in views:
            gold.spark.sql(one.text.rstrip(";"))
        for *row, weight in gold.spark.sql(change.query).collect():
            before[tuple(row)] += weight
        for one in views:
            assert one.name is not None
            gold.spark.catalog.dropTempView(one.name)
        gold.refresh(name, tick)
        assert +before == Counter(gold.rows(name))

"""The SQL that ``tidemark explain --sql`` prints, run as it is printed."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.gold.explain.publish_sql import RESULT
from spark_jobs.gold.explain.refresh_sql import RefreshSql, refresh_sql
from spark_jobs.gold.recover.recompute import Recomputer
from spark_jobs.graph.manifest import Column
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.ranges import TimeRange
from spark_jobs.planning.recompute import Recompute
from spark_jobs.storage import tables
from tests.spark.gold_project import GoldProject

MORE = """SELECT o.order_id, o.customer, CAST(o.amount AS DECIMAL(12, 2)) AS amount
FROM VALUES (7L, 'ann', 1.00), (8L, 'eve', 2.00), (9L, NULL, 3.00), (10L, NULL, 3.00)
AS o (order_id, customer, amount)"""
VIEWS = {
    "sums": "SELECT o.customer, COUNT(*) AS orders, SUM(o.amount) AS amount "
    "FROM silver.orders AS o GROUP BY o.customer",
    "largest": "SELECT o.customer, MAX(o.amount) AS amount "
    "FROM silver.orders AS o GROUP BY o.customer",
    "copies": "SELECT o.customer, o.amount > 2 AS big FROM silver.orders AS o",
}
STEPS = {"sums": "merge", "largest": "merge", "copies": "delete+insert"}

VISITS = """SELECT CAST(v.day AS DATE) AS day, v.page FROM VALUES
('2026-01-01', 'a'), ('2026-01-02', 'a'), ('2026-01-02', 'a'), ('2026-01-02', NULL),
('2026-01-03', 'b') AS v (day, page)"""
DAY = TimeRange(datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))


Table = list[tuple[Any, ...]]


def rows_of_script(gold: GoldProject, view: str, script: RefreshSql) -> tuple[Table, Table]:
    """Run the whole script, publishing included, on a copy of the published table.

    Returns:
        the rows of the result, and those of the copy afterwards.
    """
    assert script.publish is not None
    published = gold.location(f"gold.{view}")
    copied = gold.location("gold.copied")
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(published, copied)
    *_, last = script.text.split("\n\n")
    commented = last.splitlines()[2:]
    statement = "\n".join(line.removeprefix("-- ") for line in commented).rstrip(";")
    assert statement == script.publish.sql
    for one in script.statements:
        gold.spark.sql(one.text.rstrip(";"))
    result = [tuple(row) for row in gold.spark.sql(f"SELECT * FROM {RESULT}").collect()]
    gold.spark.sql(statement.replace(published, copied)).collect()
    for one in script.statements:
        gold.spark.catalog.dropTempView(one.name)
    return result, gold.rows("copied")


@pytest.mark.parametrize(
    "name",
    [one if one == "largest" else pytest.param(one, marks=pytest.mark.long) for one in VIEWS],
)
def test_the_printed_sql_of_an_incremental_refresh_computes_and_publishes_its_rows(
    gold: GoldProject, name: str
) -> None:
    gold.view(name, VIEWS[name], maintained=True)
    gold.refresh(name, "t0")
    for tick in ("t1", "t2"):
        gold.append("silver.orders", MORE)
        gold.execute("DELETE FROM {} WHERE order_id IN (1, 9)", "silver.orders")
        before = Counter(gold.rows(name))
        plan = gold.refresher.explain(name)
        assert plan.word == "incremental"
        script = refresh_sql(gold.refresher.context, plan)
        assert script.publish is not None
        assert script.publish.as_dict()["step"] == STEPS[name]
        change, found = rows_of_script(gold, name, script)
        for *row, weight in change:
            before[tuple(row)] += weight
        gold.refresh(name, tick)
        assert +before == Counter(gold.rows(name))
        assert found == gold.rows(name)


def test_the_printed_sql_of_a_full_refresh_publishes_its_rows(gold: GoldProject) -> None:
    # The first columns are those of the SELECT; the second view has another column.
    columns = (Column(name="customer", type="string"), Column(name="big", type="boolean"))
    statements = []
    for tick, declared in (("t0", columns), ("t1", columns), ("t2", ())):
        gold.view("copies", VIEWS["copies"], columns=declared)
        if tick == "t0":
            gold.refresh("copies", tick)
        gold.append("silver.orders", MORE)
        plan = gold.refresher.explain("copies")
        script = refresh_sql(gold.refresher.context, plan)
        assert plan.word == "full"
        assert script.publish is not None
        statements.append(str(script.publish.sql).split(" delta.")[0])
        _, found = rows_of_script(gold, "copies", script)
        gold.refresh("copies", tick + "'")
        assert found == gold.rows("copies")
    assert statements == ["INSERT OVERWRITE", "INSERT OVERWRITE", "CREATE OR REPLACE TABLE"]


def test_the_printed_sql_of_a_range_publishes_only_its_rows(gold: GoldProject) -> None:
    gold.append("silver.visits", VISITS)
    query = "SELECT v.day, v.page FROM silver.visits AS v"
    columns = (Column(name="day", type="date"), Column(name="page", type="string"))
    gold.view("pages", query, inputs=["silver.visits"], columns=columns, maintained=True)
    gold.refresh("pages", "t0")
    spoil(gold)
    recomputer = Recomputer(gold.refresher)
    asked = Recompute(code=ReasonCode.REPLAYED, time=DAY)
    plan = recomputer.explain("pages", asked=asked)
    script = refresh_sql(gold.refresher.context, plan)
    assert plan.word == "range"
    _, found = rows_of_script(gold, "pages", script)
    recomputer.publish(
        recomputer.build(recomputer.plan("pages", tick="r1", asked=asked).attempt_id)
    )
    assert found == gold.rows("pages")
    assert [f"{day:%d} {page}" for day, page in found] == [
        "01 a",
        "01 a",
        "02 None",
        "02 a",
        "02 a",
    ]


def spoil(gold: GoldProject) -> None:
    """Publish wrong rows: each twice, without those of page b, and none with NULL."""
    location = gold.location("gold.pages")
    latest = latest_publication(location)
    assert latest is not None
    rows = f"SELECT * FROM delta.`{location}` WHERE page = 'a'"
    mark = latest.watermark.as_metadata()
    mark |= {"sequence": mark["sequence"] + 1, "attempt": "wrong"}
    tables.overwrite(gold.spark.sql(f"{rows} UNION ALL {rows}"), location, metadata=mark)

"""A refresh by Spark skips what cannot have the keys of its change."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from spark_jobs.gold.engine import spark as engine_module
from spark_jobs.gold.engine import step_values
from spark_jobs.gold.engine.spark import SparkEngine
from spark_jobs.graph.runtime_filters import Known
from spark_jobs.graph.sql import Query
from spark_jobs.planning.decision import Incremental
from spark_jobs.storage import policy
from spark_jobs.storage.policy import Limit
from tests.spark.gold_project import GoldProject
from tests.spark.test_gold_incremental import FIRST_ORDERS, FIRST_USERS, VIEWS, change

LINES = "SELECT id AS line, CAST(id / 4 AS BIGINT) AS order_id, id % 7 AS amount FROM RANGE({}, {})"
ORDERS = (
    "SELECT id AS order_id, id % 3 AS customer, DATE_ADD(DATE '2026-01-01', CAST(id / 100 AS INT)) "
    "AS day FROM RANGE({}, {})"
)
VIEW = """SELECT o.customer, COUNT(*) AS n, SUM(l.amount) AS total
FROM silver.baskets AS o JOIN silver.lines AS l ON l.order_id = o.order_id GROUP BY o.customer"""


@pytest.fixture(scope="module")
def by_spark(quick_engines: None) -> Iterator[None]:
    """Spark refreshes, in settings that are loaded later."""
    del quick_engines
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_GOLD__ENGINE", "spark")
        yield


@pytest.fixture
def project(by_spark: None, gold: GoldProject) -> Iterator[GoldProject]:
    del by_spark
    gold.append("silver.baskets", ORDERS.format(0, 1000))
    gold.append("silver.lines", LINES.format(0, 4000))
    gold.view("totals", VIEW, inputs=("silver.baskets", "silver.lines"), maintained=True)
    gold.refresh("totals", "t1")
    # Otherwise a plan shows the beginning of what is pushed into a scan.
    gold.spark.conf.set("spark.sql.maxMetadataStringLength", "10000")
    yield gold
    gold.spark.conf.unset("spark.sql.maxMetadataStringLength")


def test_the_other_side_of_a_join_is_read_where_the_keys_are(
    project: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    query = SparkEngine._query

    def noted(engine: SparkEngine, text: Query) -> DataFrame:
        frame = query(engine, text)
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return frame

    monkeypatch.setattr(SparkEngine, "_query", noted)
    monkeypatch.setattr(policy, "COPIED", policy.NOTHING)
    # The newest orders, and an old one.
    project.append("silver.baskets", ORDERS.format(1000, 1003))
    project.append("silver.lines", LINES.format(4000, 4012))
    project.execute("UPDATE {} SET customer = 8 WHERE order_id = 5", "silver.baskets")
    assert isinstance(project.refresh("totals", "t2").plan.decision, Incremental)
    project.assert_right("totals")
    pushed = [one for plan in plans for one in re.findall(r"PushedFilters: \[(.*?)\], Read", plan)]
    old, recent = (",".join(sorted(map(str, range(at, at + 11)))) for at in (5, 1000))
    wanted = f"Or(In(order_id, [{old}]),In(order_id, [{recent}]))"
    assert [one for one in pushed if wanted in one], pushed


def test_of_a_large_table_the_files_with_the_keys_are_read(
    project: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[str] = []
    query = SparkEngine._query

    def noted(engine: SparkEngine, text: Query) -> DataFrame:
        frame = query(engine, text)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        scans.extend(re.findall(r"Location: (\w+)", plan))
        files.extend(Path(one).name for one in frame.inputFiles())
        return frame

    files: list[str] = []
    monkeypatch.setattr(SparkEngine, "_query", noted)
    monkeypatch.setattr(policy, "COPIED", policy.NOTHING)
    for start in range(1000, 1040, 10):
        project.append("silver.baskets", ORDERS.format(start, start + 10))
        project.append("silver.lines", LINES.format(4 * start, 4 * start + 40))
    project.refresh("totals", "t2")
    old = {
        one
        for table in ("silver.baskets", "silver.lines")
        for one in DeltaTable(project.location(table)).file_uris()
    }
    # More files than are read one by one, and no fewer than the last change has.
    monkeypatch.setattr(policy, "SCANNED", Limit(files=2))
    project.append("silver.baskets", ORDERS.format(1040, 1045))
    project.append("silver.lines", LINES.format(4160, 4180))
    scans.clear()
    files.clear()
    assert isinstance(project.refresh("totals", "t3").plan.decision, Incremental)
    assert scans
    assert set(scans) == {"InMemoryFileIndex"}
    # No order of before has a line that is new.
    assert not {Path(one).name for one in old} & set(files)
    assert len(old) > len(set(files)) > 0
    project.assert_right("totals")


@pytest.mark.long
def test_every_shape_of_view_equals_its_sql_with_filters(
    by_spark: None, gold: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    del by_spark
    monkeypatch.setattr(policy, "COPIED", policy.NOTHING)
    monkeypatch.setattr(step_values, "_SHARE", math.inf)
    filtered: set[str] = set()
    add = engine_module.with_runtime_filters

    def noted(query: Query, known: Known) -> Query:
        found = add(query, known)
        filtered.update([view] if found != query else [])
        return found

    monkeypatch.setattr(engine_module, "with_runtime_filters", noted)
    gold.append("silver.sales", FIRST_ORDERS)
    gold.append("silver.people", FIRST_USERS)
    for name, query in VIEWS.items():
        inputs = tuple(one for one in ("silver.sales", "silver.people") if one in query)
        gold.view(name, query, inputs=inputs, maintained=True)
    rng = random.Random(11)
    for step in range(4):
        for view in VIEWS:
            gold.refresh(view, f"t{step}")
            gold.assert_right(view)
        change(gold, rng, step + 1)
    assert len(filtered) > len(VIEWS) / 2, filtered

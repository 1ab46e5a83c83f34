"""Other engines over the gold tables of a small project: the same rows, and nothing unknown."""

from __future__ import annotations

import re

import pytest
from deltalake import DeltaTable

from spark_jobs.planning.decision import ReasonCode
from tests.spark.gold_project import GoldProject
from tests.spark.readers import PAGE, SNIPPETS, arrow, disagreements, read_with

THINGS = """SELECT * FROM VALUES
(1L, 'é', 1.50, 12345678901234567890123456789012345.678, TIMESTAMP'0001-01-01 00:00:00',
 TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', DATE'0001-01-01', array(1, NULL),
 named_struct('x', 1, 'y', array('a')), map('k', 1), DOUBLE('NaN'), X'FF00', TRUE),
(2L, '', NULL, NULL, TIMESTAMP'9999-12-31 23:59:59.999999', NULL, DATE'9999-12-31', array(), NULL,
 map(), -0.0D, X'', FALSE),
(NULL, NULL, 3.00, -1.001, NULL, NULL, NULL, NULL, named_struct('x', NULL, 'y', NULL), NULL, NULL,
 NULL, NULL)
AS v(id, name, amount, wide, at, local, day, few, part, pairs, real, raw, flag)"""
MORE = "SELECT 4L AS order_id, 'ann' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount"


@pytest.fixture
def lake(gold: GoldProject) -> GoldProject:
    """Views of every type, of none of whose rows, and one that was written again by a change."""
    gold.append("silver.things", THINGS)
    gold.view("things", "SELECT t.* FROM silver.things AS t", inputs=["silver.things"])
    gold.view("nothing", "SELECT o.* FROM silver.orders AS o WHERE o.order_id < 0")
    gold.view(
        "totals",
        "SELECT o.customer AS customer, COUNT(*) AS orders, SUM(o.amount) AS amount "
        "FROM silver.orders AS o GROUP BY o.customer",
        maintained=True,
    )
    for view in gold.manifest.gold:
        gold.refresh(view, "t1")
    gold.append("silver.orders", MORE)
    followed = gold.refresh("totals", "t2")
    assert followed.plan.reason.code is ReasonCode.INPUT_CHANGED_RULE
    return gold


def test_every_reader_sees_the_rows_that_spark_sees(lake: GoldProject) -> None:
    assert set(SNIPPETS) == {"delta-rs", "pandas", "polars", "DuckDB", "Spark"}
    for view in lake.manifest.gold:
        assert disagreements(lake.location(f"gold.{view}")) == {}, view


def test_a_reader_that_began_before_a_refresh_ends_with_what_it_began(lake: GoldProject) -> None:
    location = lake.location("gold.totals")
    begun = DeltaTable(location).to_pyarrow_dataset()
    before = sorted(map(repr, arrow(read_with("delta-rs", location)).to_pylist()))
    lake.append("silver.orders", MORE)
    lake.refresh("totals", "t3", force=True)
    assert sorted(map(repr, begun.to_table().to_pylist())) == before
    after = sorted(map(repr, arrow(read_with("DuckDB", location)).to_pylist()))
    assert after != before


def test_tables_use_the_features_that_the_page_names_and_no_others(lake: GoldProject) -> None:
    table = PAGE.partition("## Delta features in use")[2]
    named = dict(re.findall(r"^\| `(\w+)` \| ([\w ]+) \|", table, re.MULTILINE))
    readers = {name for name, kind in named.items() if "reader" in kind}
    used: set[str] = set()
    for view in lake.manifest.gold:
        protocol = DeltaTable(lake.location(f"gold.{view}")).protocol()
        # Below these versions a table lists its features; with lower ones a number stands for some.
        assert (protocol.min_writer_version, protocol.min_reader_version) in {(7, 1), (7, 3)}
        assert set(protocol.reader_features or ()) <= readers
        used |= {*(protocol.writer_features or ()), *(protocol.reader_features or ())}
    assert used == set(named)

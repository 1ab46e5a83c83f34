"""Definitions that differ in columns alone: only these are computed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from deltalake import DeltaTable

from spark_jobs.gold.base.publications import latest_publication
from spark_jobs.storage import arrow_tables
from tests.spark.gold_project import GoldProject

BEFORE = (
    "SELECT o.customer AS customer, COUNT(*) AS orders FROM silver.orders AS o GROUP BY o.customer"
)
AFTER = BEFORE.replace("COUNT(*) AS orders", "MAX(o.amount) AS highest, COUNT(*) AS orders")
ROWS = [
    (None, None, 1),
    ("ann", Decimal("10.00"), 1),
    ("bob", Decimal("5.50"), 1),
]


@pytest.fixture
def built(gold: GoldProject) -> GoldProject:
    gold.view("wide", BEFORE, maintained=True)
    gold.refresh("wide", "t1")
    return gold


def order(gold: GoldProject, customer: str, amount: str) -> None:
    values = f"4L AS order_id, '{customer}' AS customer, CAST({amount} AS DECIMAL(12, 2)) AS amount"
    gold.append("silver.orders", f"SELECT {values}")


def falsify(gold: GoldProject, name: str) -> None:
    """Double the orders under a commit that says it is a publication, as a fault would."""
    location = gold.location(f"gold.{name}")
    latest = latest_publication(location)
    assert latest is not None
    mark: dict[str, Any] = latest.watermark.as_metadata()
    rows = gold.frame(name).selectExpr("customer", "orders * 2 AS orders").toArrow()
    arrow_tables.replace(rows, location, metadata=mark | {"attempt": "wrong"})


def test_only_the_new_column_is_computed(built: GoldProject) -> None:
    falsify(built, "wide")
    built.view("wide", AFTER, maintained=True)
    outcome = built.refresh("wide", "t2")
    assert outcome.plan.line == "full: columns highest are new or differ, the others stay"
    # That the wrong counts are still there shows that nobody counted.
    assert built.rows("wide") == [(one, high, count * 2) for one, high, count in ROWS]


def test_changes_during_a_column_refresh_are_applied_next(built: GoldProject) -> None:
    order(built, "ann", "99")
    built.view("wide", AFTER, maintained=True)
    assert built.refresh("wide", "t2").plan.reason.code == "COLUMNS_CHANGED"
    assert built.rows("wide") == ROWS
    built.assert_right("wide")
    assert built.refresh("wide", "t3").plan.word == "incremental"
    assert built.rows("wide")[1] == ("ann", Decimal("99.00"), 2)
    built.assert_right("wide")


def test_a_column_may_go_and_another_meaning_is_computed(built: GoldProject) -> None:
    built.view("wide", BEFORE.replace("COUNT(*)", "COUNT(o.amount)"), maintained=True)
    assert built.refresh("wide", "t2").plan.reason.code == "COLUMNS_CHANGED"
    assert built.rows("wide") == [(None, 0), ("ann", 1), ("bob", 1)]
    built.assert_right("wide")
    built.view("wide", BEFORE.replace(", COUNT(*) AS orders", ""), maintained=True)
    assert built.refresh("wide", "t3").plan.line == "full: columns are gone, the others stay"
    assert built.rows("wide") == [(None,), ("ann",), ("bob",)]
    built.assert_right("wide")


def test_without_the_published_inputs_all_is_computed(built: GoldProject) -> None:
    orders = DeltaTable(built.location("silver.orders"))
    orders.delete("customer = 'bob'")
    orders.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    built.view("wide", AFTER, maintained=True)
    assert built.refresh("wide", "t2").plan.reason.code == "DEFINITION_CHANGED"
    assert built.rows("wide") == ROWS[:2]

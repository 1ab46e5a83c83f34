"""Batches that a suite judges: what goes to quarantine, is counted, or stops a table."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.access.secrets import DEBEZIUM_PLACEHOLDER
from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.storage import policy
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.reader import read
from tests.spark.silver.test_reprocess import World
from tests.spark.silver.world import (
    CHANGES,
    CLICKS,
    EVENTS,
    HISTORY,
    ORDERS,
    Record,
    change,
    counts,
    event,
)

NOT_NULL = "expect_column_values_to_not_be_null"
IN_SET = "expect_column_values_to_be_in_set"
BETWEEN = "expect_column_values_to_be_between"
EQUAL = "expect_column_pair_values_to_be_equal"


def expect(kind: str, severity: str = "critical", **kwargs: Any) -> dict[str, Any]:
    return {"type": kind, "kwargs": kwargs, "severity": severity}


def judged(entry: SilverEntry, *expectations: dict[str, Any], on_failure: OnFailure) -> SilverEntry:
    suite = {"name": entry.name, "expectations": list(expectations)}
    return entry.model_copy(update={"suite": suite, "on_failure": on_failure})


@pytest.fixture(params=["in this process", "by Spark"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of applying a batch."""
    if request.param == "by Spark":
        monkeypatch.setattr(policy, "BATCH", Limit(rows=0))
    return str(request.param)


def quarantined(world: World) -> list[tuple[Any, ...]]:
    rows = read(world.spark, world.applier.tables.quarantine)
    return sorted(tuple(row) for row in rows.select("offset", "reason", "detail").collect())


def failed(offset: int, rule: str) -> tuple[int, str, str]:
    return offset, "EXPECTATION_FAILED", rule


def loosened(world: World) -> World:
    """The same table after its suite was removed."""
    entry = world.applier.entry.model_copy(update={"suite": None})
    world.applier = replace(world.applier, entry=entry)
    return world


CLICK_RULES = (
    expect(NOT_NULL, column="user_id"),
    expect(BETWEEN, column="amount", min_value=0),
    # A warning takes no row away.
    expect(IN_SET, "warning", column="event_id", value_set=["a"]),
)
CLICK_RECORDS: list[Record] = [
    event(event_id="a", user_id=1, amount=1.5),
    event(event_id="b", user_id=1, amount=-1),
    event(event_id="c", amount=-1),
    # The WHERE clause leaves it out, so it is no row.
    event(event_id="d", user_id=-1, amount=-1),
    # What cannot be read is not judged.
    event(event_id="e", user_id="x", amount=-1),
    (b"k", None),
    event(event_id="f", user_id=2),
    event(event_id="b", user_id=3, amount=3),
]


@pytest.mark.usefixtures("way")
def test_failing_events_go_to_quarantine_and_come_back(spark: SparkSession, tmp_path: Path) -> None:
    entry = judged(CLICKS, *CLICK_RULES, on_failure=OnFailure.QUARANTINE)
    world = World(spark, tmp_path, EVENTS, entry)
    world.take(CLICK_RECORDS, 0)

    assert counts(world.batches[-1]) == {"applied": 3, "quarantined": 3, "ignored": 2}
    assert quarantined(world) == [
        failed(1, f"{BETWEEN}(amount)"),
        # The first of the suite that fails.
        failed(2, f"{NOT_NULL}(user_id)"),
        (4, "TYPE_MISMATCH", "user_id"),
    ]
    assert world.rows("event_id", "user_id") == [("a", 1), ("b", 3), ("f", 2)]

    assert loosened(world).reprocess(reason="EXPECTATION_FAILED") == {
        (0, 1): "duplicate",
        (0, 2): "applied",
    }
    assert world.totals() == {
        "applied": 4,
        "quarantined": 1,
        "duplicate": 1,
        "ignored": 2,
        "superseded": 0,
    }


def test_a_fixed_value_is_judged_again(spark: SparkSession, tmp_path: Path) -> None:
    entry = judged(CLICKS, *CLICK_RULES, on_failure=OnFailure.QUARANTINE)
    world = World(spark, tmp_path, EVENTS, entry)
    world.take(CLICK_RECORDS[:3], 0)
    # A repeated batch changes nothing.
    world.take(CLICK_RECORDS[:3], 0)
    assert len(quarantined(world)) == 2
    values = {
        (0, 1): event(event_id="b", user_id=1, amount=2)[1],
        (0, 2): event(event_id="c", user_id=1, amount=-2)[1],
    }
    assert world.reprocess(values=values) == {
        (0, 1): "applied",
        (0, 2): "quarantined EXPECTATION_FAILED",
    }
    assert quarantined(world) == [failed(2, f"{BETWEEN}(amount)")]
    assert world.totals()["applied"] == 2


ORDER_RULE = expect(BETWEEN, column="twice", min_value=0)


@pytest.mark.usefixtures("way")
def test_a_failing_change_leaves_the_row_before(spark: SparkSession, tmp_path: Path) -> None:
    entry = judged(ORDERS, ORDER_RULE, on_failure=OnFailure.QUARANTINE)
    world = World(spark, tmp_path, CHANGES, entry)
    world.take([change("r", key, 100, amount="1.00") for key in (1, 2, 3, 4)], 0)
    records = [
        change("u", 1, 110, commit=100, amount="-1.00"),
        # A deletion is no row, whatever it was; nor is what the WHERE clause leaves out.
        change("d", 2, 120, commit=100, amount="-1.00"),
        change("u", 3, 130, commit=100, amount="-1.00", status="hidden"),
        change("u", 4, 140, commit=100, amount="-1.00"),
        change("u", 4, 150, commit=100, amount="5.00"),
    ]
    world.take(records, 1, first=10)

    assert counts(world.batches[-1]) == {"applied": 3, "quarantined": 2}
    rule = f"{BETWEEN}(twice)"
    assert quarantined(world) == [failed(10, rule), failed(13, rule)]
    table = [(1, Decimal("2.00")), (4, Decimal("10.00"))]
    assert world.rows("order_id", "twice") == table
    # The later change of order 4 wins.
    assert loosened(world).reprocess() == {(0, 10): "applied", (0, 13): "superseded"}
    assert world.rows("order_id", "twice") == [(1, Decimal("-2.00")), table[1]]
    world.totals()


def test_a_failing_change_is_no_version(spark: SparkSession, tmp_path: Path) -> None:
    rule = expect(IN_SET, column="status", value_set=["placed", "paid"])
    entry = judged(HISTORY, rule, on_failure=OnFailure.QUARANTINE)
    world = World(spark, tmp_path, CHANGES, entry)
    records = [
        change("c", 1, 100, commit=90),
        change("u", 1, 110, commit=100, status="lost"),
        change("u", 1, 120, commit=110, status="paid"),
        change("d", 1, 130, commit=120, status="lost"),
    ]
    world.take(records, 0)

    assert quarantined(world) == [failed(1, f"{IN_SET}(status)")]
    assert world.rows("status") == [("paid",), ("placed",)]
    assert loosened(world).reprocess() == {(0, 1): "applied"}
    assert world.rows("status") == [("lost",), ("paid",), ("placed",)]
    world.totals()


def test_a_value_that_was_not_sent_is_that_of_the_row_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One column keeps a value that was judged; two cannot be compared without one of them."""
    unsent = change("u", 1, 110, commit=100, status=DEBEZIUM_PLACEHOLDER)
    first = change("c", 1, 100, commit=90)
    alone = expect(IN_SET, column="status", value_set=["placed"])
    world = World(
        spark,
        tmp_path / "one",
        CHANGES,
        judged(ORDERS, alone, on_failure=OnFailure.QUARANTINE),
    )
    # The WHERE clause of the orders reads the status, so that it must be sent.
    projection = "SELECT o.order_id, o.status, o.amount * 2 AS twice FROM source AS o"
    entry = world.applier.entry.model_copy(update={"projection": projection})
    world.applier = replace(world.applier, entry=entry)
    world.take([first, unsent], 0)
    assert (quarantined(world), world.rows("status", "__offset")) == ([], [("placed", 1)])

    columns = (*ORDERS.columns, ORDERS.columns[1].model_copy(update={"name": "same"}))
    both = entry.model_copy(
        update={
            "projection": projection.replace("AS twice", "AS twice, 'placed' AS same"),
            "columns": columns,
        }
    )
    pair = expect(EQUAL, column_A="status", column_B="same")
    world = World(
        spark, tmp_path / "two", CHANGES, judged(both, pair, on_failure=OnFailure.QUARANTINE)
    )
    world.take([first, unsent], 0)
    assert quarantined(world) == [(1, "UNAVAILABLE_VALUE", "status")]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("policy_word", [OnFailure.WARN, OnFailure.HOLD])
def test_only_the_policy_quarantine_takes_rows_away(
    spark: SparkSession, tmp_path: Path, policy_word: OnFailure
) -> None:
    entry = judged(CLICKS, *CLICK_RULES, on_failure=policy_word)
    world = World(spark, tmp_path, EVENTS, entry)
    world.take(CLICK_RECORDS[:3], 0)

    assert counts(world.batches[-1]) == {"applied": 3}

"""Batches that a suite judges: what goes to quarantine, is counted, or stops a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.access.secrets import DEBEZIUM_PLACEHOLDER
from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.silver.apply.holding import BatchHold
from spark_jobs.silver.errors import BatchHeldError
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import policy
from spark_jobs.storage.reader import read
from tests.spark.silver.test_reprocess import World
from tests.spark.silver.world import (
    CHANGES,
    CLICKS,
    EVENTS,
    HISTORY,
    ORDERS,
    Record,
    bronze,
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
        monkeypatch.setattr(policy, "BATCH", policy.NOTHING)
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
def test_failing_events_go_to_quarantine(spark: SparkSession, tmp_path: Path) -> None:
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


def test_failing_events_come_back(spark: SparkSession, tmp_path: Path) -> None:
    entry = judged(CLICKS, *CLICK_RULES, on_failure=OnFailure.QUARANTINE)
    world = World(spark, tmp_path, EVENTS, entry)
    world.take(CLICK_RECORDS, 0)

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


UNIQUE = "expect_column_values_to_be_unique"
TOGETHER = "expect_compound_columns_to_be_unique"
ROWS = "expect_table_row_count_to_be_between"
BATCH_RULES = (
    expect(NOT_NULL, column="user_id", mostly=0.7),
    expect(BETWEEN, column="amount", min_value=0),
    expect(UNIQUE, column="user_id"),
    expect(TOGETHER, column_list=["user_id", "amount"]),
    expect(ROWS, "warning", max_value=3),
    expect(ROWS, min_value=4, strict_min=True),
    expect(NOT_NULL, "info", column="at"),
)
BATCH: list[Record] = [
    event(event_id="a", user_id=1, amount=1.5),
    event(event_id="b", user_id=1, amount=-1),
    event(event_id="c", user_id=2, amount=-1),
    event(event_id="d"),
    # No row of the table: left out, sent before, unreadable.
    event(event_id="e", user_id=-1, amount=-1),
    event(event_id="a", user_id=1, amount=-1),
    event(event_id="f", user_id="x"),
]


def findings(world: World) -> tuple[str | None, int, list[tuple[int, str, int | None]]]:
    """The outcome of the last batch, its rows, and each failed rule with its rows."""
    batch = world.batches[-1]
    verdict = batch.verdict or {}
    failed = [
        (one["position"], one["severity"], one["unexpected_count"])
        for one in verdict.get("results", ())
    ]
    return batch.outcome, verdict.get("rows", 0), failed


@pytest.mark.usefixtures("way")
def test_a_verdict_is_recorded_with_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    entry = judged(CLICKS, *BATCH_RULES, on_failure=OnFailure.WARN)
    world = World(spark, tmp_path, EVENTS, entry)
    world.take(BATCH, 0)

    assert counts(world.batches[-1])["applied"] == 4
    critical, warning = "critical", "warning"
    assert findings(world) == (
        "warned",
        4,
        [
            (1, critical, 2),
            (2, critical, 2),
            (4, warning, None),
            (5, critical, None),
            (6, "info", 4),
        ],
    )
    # A repeated batch gets the same verdict.
    world.again()
    world.take(BATCH, 0)
    assert world.batches[0] == world.batches[1]
    # A batch of duplicates writes no row, and none can fail.
    world.take(BATCH[5:6], 1, first=20)
    assert findings(world) == ("warned", 0, [(5, critical, None)])


@pytest.mark.usefixtures("way")
def test_rows_that_went_to_quarantine_are_in_the_verdict(
    spark: SparkSession, tmp_path: Path
) -> None:
    rule = expect(IN_SET, "warning", column="status", value_set=["placed"])
    entry = judged(ORDERS, ORDER_RULE, rule, on_failure=OnFailure.QUARANTINE)
    world = World(spark, tmp_path, CHANGES, entry)
    records = [
        change("c", 1, 100, commit=90, amount="-1.00", status="paid"),
        change("c", 2, 110, commit=100, status="paid"),
        # A deleted row is not judged.
        change("c", 3, 120, commit=110),
        change("d", 3, 130, commit=120, status="paid"),
    ]
    world.take(records, 0)

    # The rejected row is no row that the warning is about.
    assert findings(world) == ("warned", 1, [(0, "critical", 1), (1, "warning", 1)])
    [message, _] = [one["message"] for one in (world.batches[-1].verdict or {})["results"]]
    assert message == f"{BETWEEN} of twice (min_value=0) failed: 1 of 2 values do not fit"


def test_versions_are_judged_as_changes(spark: SparkSession, tmp_path: Path) -> None:
    rule = expect(IN_SET, column="status", value_set=["placed"])
    world = World(spark, tmp_path, CHANGES, judged(HISTORY, rule, on_failure=OnFailure.WARN))
    world.take([change("c", 1, 100, commit=90)], 0)
    assert findings(world) == ("passed", 1, [])
    filled = change("u", 1, 120, commit=110, status=DEBEZIUM_PLACEHOLDER)
    world.take([change("u", 1, 110, commit=100, status="paid"), filled], 1, first=10)

    # The second has the value of the first, and was judged with it.
    assert findings(world) == ("warned", 2, [(0, "critical", 2)])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    with ControlStore.open(f"sqlite:///{tmp_path / 'control.db'}") as opened:
        opened.migrate()
        yield opened


@pytest.mark.usefixtures("way")
def test_a_batch_that_fails_is_held(
    spark: SparkSession, tmp_path: Path, store: ControlStore
) -> None:
    entry = judged(CLICKS, *BATCH_RULES, on_failure=OnFailure.HOLD)
    world = World(spark, tmp_path / "lake", EVENTS, entry)
    world.applier = replace(world.applier, record=store.record_silver_batch)
    held = holding(world, store)
    held.hold.check()
    with pytest.raises(BatchHeldError) as refusal:
        held.apply(bronze(spark, BATCH), 0)

    error = refusal.value
    assert (error.table, error.batch, error.file) == ("silver.clicks", 0, CLICKS.file)
    assert len(error.failures) == 5
    # Nothing of the batch is written, neither rows nor quarantine nor counts.
    assert world.rows("event_id") == []
    assert quarantined(world) == []
    assert store.silver_totals("clicks").records == store.silver_totals("clicks").batches == 0
    assert not store.silver_batch_recorded("clicks", epoch=1, batch_id=0)
    # The stream stays refused without reading the batch again, also after a restart.
    with pytest.raises(BatchHeldError):
        holding(world, store).hold.check()

    # With another policy the batch is judged again, and the table goes on.
    world.applier = replace(
        world.applier, entry=entry.model_copy(update={"on_failure": OnFailure.WARN}), ended=set()
    )
    released = holding(world, store)
    released.hold.check()
    assert counts(released.apply(bronze(spark, BATCH), 0))["applied"] == 4
    assert store.held_batch("clicks", epoch=1) is None
    assert store.silver_totals("clicks").records == len(BATCH)


def test_a_batch_that_was_begun_is_finished(
    spark: SparkSession, tmp_path: Path, store: ControlStore
) -> None:
    """A stream that was killed within a batch goes on, although the suite is a new one."""
    world = World(spark, tmp_path / "lake", EVENTS, CLICKS)
    world.take(BATCH, 0)
    entry = judged(CLICKS, *BATCH_RULES, on_failure=OnFailure.HOLD)
    world.applier = replace(world.applier, entry=entry)
    world.again()
    assert counts(holding(world, store).apply(bronze(spark, BATCH), 0))["applied"] == 4
    assert findings(world)[0] == "warned"


def holding(world: World, store: ControlStore) -> Any:
    """The table's applier as its stream uses it."""
    applier = world.applier
    hold = BatchHold(applier.entry, store, applier.epoch, applier.clock)
    return replace(applier, hold=hold)

"""Differences between a declaration and what arrives: said once, and held where rows would lie."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.vocabulary import OnDrift
from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.apply.drift_watch import DriftWatch
from spark_jobs.silver.errors import SchemaDriftError
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.drift import Drift, DriftKind
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import policy
from spark_jobs.storage.lake import Lake
from tests.spark.silver.world import (
    CHANGES,
    CLICKS,
    EVENTS,
    HISTORY,
    ORDERS,
    Record,
    applier,
    bronze,
    change,
    event,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as opened:
        yield opened


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def altered(record: Record, **image: Any) -> Record:
    """A change whose row has other fields: None takes one away."""
    key, value = record
    assert value is not None
    sent = json.loads(value)
    after = {**sent["after"], **image}
    sent["after"] = {name: one for name, one in after.items() if one is not ...}
    return key, json.dumps(sent).encode()


def watching(
    spark: SparkSession, lake: Lake, store: ControlStore, source: SourceEntry, entry: SilverEntry
) -> BatchApplier:
    SilverTables.of(lake, entry).create(spark, source)
    made = applier(lake, source, entry)
    return replace(made, watch=DriftWatch(source, entry, store))


def told(store: ControlStore) -> list[tuple[str, str, int]]:
    return [(one.kind.value, one.column, one.offset) for one in store.drifts()]


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["current", "history"])
def test_a_renamed_column_that_is_read_holds_the_table_with_nothing_written(
    spark: SparkSession, lake: Lake, store: ControlStore, entry: SilverEntry
) -> None:
    work = watching(spark, lake, store, CHANGES, entry)
    work.apply(bronze(spark, [change("c", 1, 10, commit=9)]), 0)
    renamed = altered(change("u", 1, 20, commit=19), status=..., state="placed")
    batch = bronze(spark, [change("c", 2, 15, commit=14), renamed], first=1)
    for _ in range(2):
        with pytest.raises(SchemaDriftError) as caught:
            work.apply(batch, 1)
    assert caught.value.drifts[0].position == "shop.public.orders, partition 0, offset 2"
    assert [one.column for one in caught.value.drifts] == ["status"]
    assert told(store) == [("unknown", "state", 2), ("vanished", "status", 2)]
    table = spark.read.format("delta").load(work.tables.table)
    assert [row["order_id"] for row in table.collect()] == [1]
    # Accepted, the batch goes on where it stopped.
    store.accept_drifts("orders", columns=["status", "state"], by="t", reason="renamed on purpose")
    counted = work.apply(batch, 1)
    assert counted is not None
    assert (counted.records, counted.applied) == (2, 2)
    assert told(store) == [("unknown", "state", 2), ("vanished", "status", 2)]


@pytest.mark.parametrize("policy", [OnDrift.WARN, OnDrift.EVOLVE])
def test_with_another_policy_a_vanished_column_is_recorded_and_the_table_continues(
    spark: SparkSession, lake: Lake, store: ControlStore, policy: OnDrift
) -> None:
    source = CHANGES.model_copy(update={"on_drift": policy})
    work = watching(spark, lake, store, source, ORDERS)
    gone = altered(change("u", 1, 20, commit=19), amount=...)
    counted = work.apply(bronze(spark, [change("c", 1, 10, commit=9), gone]), 0)
    assert counted is not None
    assert counted.applied == 1
    assert told(store) == [("vanished", "amount", 1)]


def test_an_unread_column_does_not_hold_the_table(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    entry = ORDERS.model_copy(
        update={
            "projection": "SELECT o.order_id, o.status FROM source AS o",
            "columns": ORDERS.columns[:2],
        }
    )
    work = watching(spark, lake, store, CHANGES, entry)
    gone = altered(change("u", 1, 20, commit=19), amount=...)
    assert work.apply(bronze(spark, [change("c", 1, 10, commit=9), gone]), 0) is not None
    assert told(store) == [("vanished", "amount", 1)]


def test_hold_stops_before_any_difference(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    source = CHANGES.model_copy(update={"on_drift": OnDrift.HOLD})
    work = watching(spark, lake, store, source, ORDERS)
    with pytest.raises(SchemaDriftError):
        work.apply(bronze(spark, [altered(change("c", 1, 10, commit=9), extra=True)]), 0)
    assert spark.read.format("delta").load(work.tables.table).isEmpty()
    assert told(store) == [("unknown", "extra", 0)]


def test_records_from_before_a_column_was_added_show_nothing_in_any_order(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    work = watching(spark, lake, store, CHANGES, ORDERS)
    old = altered(change("c", 1, 10, commit=9), status=...)
    work.apply(bronze(spark, [change("c", 2, 30, commit=29)]), 0)
    work.apply(bronze(spark, [old], first=1), 1)
    assert told(store) == []


def test_a_column_that_never_arrived_is_reported_until_it_does(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    work = watching(spark, lake, store, CHANGES, ORDERS)
    work.apply(bronze(spark, [altered(change("c", 1, 10, commit=9), status=...)]), 0)
    assert told(store) == [("missing", "status", 0)]
    work.apply(bronze(spark, [change("u", 1, 20, commit=19)], first=1), 1)
    assert told(store) == []


def test_other_types_and_values_are_reported_but_not_deletes_and_placeholders(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    columns = [
        one.model_copy(update={"values": ("placed", "paid")}) if one.name == "status" else one
        for one in CHANGES.columns
    ]
    source = CHANGES.model_copy(update={"columns": tuple(columns)})
    work = watching(spark, lake, store, source, ORDERS)
    records = [
        change("c", 1, 10, commit=9),
        change("c", 2, 11, commit=9, amount="much"),
        change("c", 3, 12, commit=9, status="lost"),
        change("u", 3, 13, commit=12, status="__debezium_unavailable_value"),
        change("d", 3, 14, commit=13),
        change("t", 0, 15, commit=14),
        altered(change("c", 4, 16, commit=15), status=5),
    ]
    assert work.apply(bronze(spark, records), 0) is not None
    assert told(store) == [
        ("retyped", "amount", 1),
        ("retyped", "status", 6),
        # By the value: "5" and "lost".
        ("value", "status", 6),
        ("value", "status", 2),
    ]


def test_events_may_lack_columns_and_an_undeclared_field_is_said_once(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    work = watching(spark, lake, store, EVENTS, CLICKS)
    records = [event(event_id="1", user_id=1), event(event_id="2"), event(event_id="3", new=[1])]
    work.apply(bronze(spark, [*records, (None, b"no json")]), 0)
    work.apply(bronze(spark, [event(event_id="4", new=[2])], first=4), 1)
    assert told(store) == [("unknown", "new", 2)]
    assert store.drifts()[0].detail == "array"


def test_batches_that_spark_judges_show_the_same(
    spark: SparkSession, lake: Lake, store: ControlStore
) -> None:
    work = replace(watching(spark, lake, store, CHANGES, ORDERS), few=policy.NOTHING)
    gone = altered(change("u", 1, 20, commit=19), amount=..., extra=1)
    with pytest.raises(SchemaDriftError):
        work.apply(bronze(spark, [change("c", 1, 10, commit=9), gone]), 0)
    assert told(store) == [("vanished", "amount", 1), ("unknown", "extra", 1)]
    assert [one.kind for one in store.drifts()] == [DriftKind.VANISHED, DriftKind.UNKNOWN]
    assert isinstance(store.drifts()[0], Drift)

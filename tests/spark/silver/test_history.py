"""Histories, truncations and values that were not sent, batch by batch."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.check.source_database import compare_with_source
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import table_version
from spark_jobs.storage.reader import read
from spark_jobs.storage.tables import changes
from tests.servers import Postgres
from tests.spark.silver.world import (
    CHANGES,
    HISTORY,
    ORDERS,
    Record,
    applier,
    bronze,
    change,
    counts,
)

KEPT = "__debezium_unavailable_value"
Rows = list[tuple[Any, ...]]


class Table:
    """A silver table of orders, fed record by record."""

    def __init__(self, spark: SparkSession, place: Path, entry: SilverEntry) -> None:
        self.spark, self.entry = spark, entry
        self.applier: BatchApplier = applier(Lake(str(place)), CHANGES, entry)
        self.applier.tables.create(spark, CHANGES)
        self.batches = self.offset = 0

    def take(self, *records: Record) -> dict[str, int]:
        frame = bronze(self.spark, records, first=self.offset)
        found = counts(self.applier.apply(frame, self.batches))
        self.batches += 1
        self.offset += len(records)
        return found

    def rows(self) -> Rows:
        names = [column.name for column in self.entry.columns]
        texts = [f"unix_seconds({name})" if name.startswith("valid") else name for name in names]
        frame = read(self.spark, self.applier.tables.table).selectExpr(*texts)
        return sorted((tuple(row) for row in frame.collect()), key=repr)

    def reasons(self) -> Rows:
        found = read(self.spark, self.applier.tables.quarantine).select(
            "offset", "reason", "detail"
        )
        return sorted(tuple(row) for row in found.collect())

    @property
    def version(self) -> int:
        found = table_version(self.applier.tables.table)
        assert found is not None
        return found.version

    def fed(self, after: int) -> Rows:
        feed = changes(self.spark, self.applier.tables.table, after=after, upto=self.version)
        times = ("unix_seconds(valid_from)", "unix_seconds(valid_to)")
        found = feed.selectExpr("_change_type", "order_id", "status", *times).collect()
        return sorted((tuple(row) for row in found), key=repr)


AMOUNT = Decimal("1.50")


def test_a_history_is_recomputed_when_an_older_change_comes(
    spark: SparkSession, tmp_path: Path, postgres: Postgres
) -> None:
    orders = Table(spark, tmp_path, HISTORY)
    first = [
        change("r", 1, 100, status="placed"),
        change("c", 2, 150, commit=140, status="placed"),
        change("d", 2, 190, commit=180),
        change("u", 1, 200, commit=190, status="shipped"),
        # Of one transaction: what was never visible is no part of the history.
        change("u", 1, 301, commit=300, at=301, status="x"),
        change("u", 1, 302, commit=300, at=301, status="completed"),
    ]
    assert orders.take(*first) == {"applied": 5, "superseded": 1}
    told = [
        (1, "completed", AMOUNT, 301, None),
        (1, "placed", AMOUNT, 100, 200),
        (1, "shipped", AMOUNT, 200, 301),
        (2, "placed", AMOUNT, 150, 190),
    ]
    assert orders.rows() == told
    before = orders.version
    again = [*first, change("r", 1, 400, status="completed"), change("d", 3, 410, commit=400)]
    assert orders.take(*again) == {"applied": 2, "duplicate": 6}
    assert (orders.rows(), orders.version) == (told, before)
    late = [change("u", 1, 151, commit=150, status="paid"), change("u", 2, 160, commit=150)]
    assert orders.take(*late) == {"applied": 2}
    assert orders.fed(before) == [
        ("insert", 1, "paid", 151, 200),
        ("update_postimage", 1, "placed", 100, 151),
        ("update_preimage", 1, "placed", 100, 200),
    ]
    # The snapshot's row was told apart from nothing until now: what it repeats has gone.
    before = orders.version
    assert orders.take(change("u", 1, 350, commit=340, status="returned")) == {"applied": 1}
    assert orders.fed(before) == [
        ("insert", 1, "completed", 400, None),
        ("insert", 1, "returned", 350, 400),
        ("update_postimage", 1, "completed", 301, 350),
        ("update_preimage", 1, "completed", 301, None),
    ]
    # The rows that hold are what the source has.
    postgres.fill(
        "public.orders", "order_id BIGINT, status TEXT, amount NUMERIC", [(1, "completed", "1.50")]
    )
    table = read(spark, orders.applier.tables.table)
    shop = CHANGES.model_copy(update={"table": "public.orders"})
    found = compare_with_source(spark, table, shop, HISTORY, dsn=postgres.dsn, max_bytes=1000)
    assert found.equal


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["current rows", "SCD type 2"])
def test_a_transaction_that_was_open_during_the_snapshot_comes_after_it(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    orders = Table(spark, tmp_path, entry)
    snapshot = [change("r", key, 100, status="placed") for key in (1, 2, 3)]
    orders.take(*snapshot)
    # Written before the snapshot, committed after it; and the rest of the transaction.
    opened = [
        change("u", 1, 80, first=True, at=101, status="paid"),
        change("d", 2, 85, first=True, at=101),
        change("u", 1, 90, first=True, at=101, status="shipped"),
        change("c", 2, 95, first=True, at=101, status="again"),
        change("u", 3, 110, first=True, at=101, status="packed"),
    ]
    assert orders.take(*opened) == {"applied": 3, "superseded": 2}
    held = [(row[0], row[1]) for row in orders.rows() if row[-1] is None or entry is ORDERS]
    assert held == [(1, "shipped"), (2, "again"), (3, "packed")]
    before = orders.rows(), orders.version
    # The connector sends them again, and then what came later.
    assert orders.take(*opened)["duplicate"] == len(opened) - (2 if entry is ORDERS else 0)
    assert (orders.rows(), orders.version) == before
    orders.take(*opened, change("u", 1, 130, commit=120, status="done"), change("r", 9, 500))
    assert [row[1] for row in orders.rows() if row[0] == 1][-1 if entry is ORDERS else 0] == "done"
    # The same in one batch.
    again = Table(spark, tmp_path / "again", entry)
    again.take(*snapshot, *opened)
    assert again.rows() == before[0]


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["current rows", "SCD type 2"])
def test_what_a_blocking_snapshot_did_not_see_comes_after_it(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    """The connector stops for it, and then sends all that was committed since it stopped."""
    orders = Table(spark, tmp_path, entry)
    orders.take(*(change("c", key, 60 + key, commit=60) for key in (1, 2)))
    # At position 100, by a connector that has sent all up to the commit at 70.
    orders.take(*(change("r", key, 100, commit=70, at=101) for key in (1, 2, 3)))
    # Written before the snapshot, committed after it, with no commit in between.
    orders.take(change("u", 1, 80, commit=70, at=110, status="paid"))
    orders.take(change("u", 1, 120, commit=115, status="done"), change("d", 3, 125, commit=115))
    held = [row[:2] for row in orders.rows() if row[-1] is None or entry is ORDERS]
    assert held == [(1, "done"), (2, "placed")]
    again = Table(spark, tmp_path / "again", entry)
    again.take(change("r", 1, 100, commit=70), change("u", 1, 80, commit=70, status="paid"))
    held = [row[:2] for row in again.rows() if row[-1] is None or entry is ORDERS]
    assert held == [(1, "paid")]


def test_a_transaction_may_begin_where_the_one_before_it_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = Table(spark, tmp_path, ORDERS)
    orders.take(change("r", 1, 500, status="shipped"))
    # Nothing else was written to the log between the two transactions.
    assert orders.take(change("u", 1, 300, commit=300, status="paid")) == {"superseded": 1}
    assert [row[1] for row in orders.rows()] == ["shipped"]
    ordinary = bronze(spark, [change("u", 1, 600, commit=600)], first=orders.offset)
    assert orders.applier.judged(ordinary).here is not None
    first = bronze(spark, [change("u", 1, 600, first=True)], first=orders.offset)
    assert orders.applier.judged(first).here is None


def test_small_batches_behind_a_truncation_need_no_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = Table(spark, tmp_path, ORDERS)
    orders.take(change("c", 1, 100), change("c", 2, 110))
    orders.take(change("t", 0, 200))

    def here(*records: Record) -> bool:
        frame = bronze(spark, records, first=orders.offset)
        return orders.applier.judged(frame).here is not None

    behind, late = change("c", 3, 300), change("u", 1, 150)
    assert here(behind)
    assert not here(late)
    assert not here(behind, change("t", 0, 200))
    assert orders.take(behind, change("u", 3, 310, status="paid"))["applied"] == 1
    assert orders.take(late) == {"superseded": 1}
    assert [row[:2] for row in orders.rows()] == [(3, "paid")]


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["current rows", "SCD type 2"])
def test_a_transaction_that_was_open_during_two_snapshots_comes_after_both(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    # The connector is killed in the first snapshot: it has read the rows of some keys only.
    first = [change("r", key, 100, status="placed") for key in (1, 2)]
    second = [change("r", key, 200, status="placed") for key in (1, 2, 3)]
    opened = [
        change("u", 1, 80, first=True, at=301, status="paid"),
        change("d", 2, 85, first=True, at=301),
        change("u", 3, 150, first=True, at=301, status="packed"),
        change("c", 4, 250, first=True, at=301, status="placed"),
    ]
    told = [(1, "paid"), (3, "packed"), (4, "placed")]

    def held(orders: Table) -> list[tuple[Any, ...]]:
        return [row[:2] for row in orders.rows() if row[-1] is None or entry is ORDERS]

    orders = Table(spark, tmp_path, entry)
    for batch in (first, second, opened):
        orders.take(*batch)
    assert held(orders) == told
    before = orders.rows(), orders.version
    assert "applied" not in orders.take(*opened) or entry is ORDERS
    assert (orders.rows(), orders.version) == before
    # The same in one batch, then the next transaction.
    again = Table(spark, tmp_path / "again", entry)
    again.take(*first, *second, *opened)
    assert again.rows() == before[0]
    again.take(change("u", 1, 290, commit=300, at=310, status="done"))
    assert held(again) == [(1, "done"), *told[1:]]


def test_a_change_at_the_position_of_the_snapshot_keeps_its_place_in_its_transaction(
    spark: SparkSession, tmp_path: Path
) -> None:
    orders = Table(spark, tmp_path, ORDERS)
    opened = [
        change("u", 1, at, first=True, status=status) for at, status in ((90, "a"), (100, "b"))
    ]
    orders.take(change("r", 1, 100), *opened)
    assert [row[1] for row in orders.rows()] == ["b"]


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["current rows", "SCD type 2"])
def test_a_change_without_a_real_position_does_not_stop_a_table(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    orders = Table(spark, tmp_path, entry)
    orders.take(change("r", 1, 100))
    orders.take(change("u", 1, -5, first=True, at=101, status="paid"), change("c", 2, 200))
    assert [row[0] for row in orders.rows()] == [1, 2]


def test_a_truncation_takes_all_that_came_before(spark: SparkSession, tmp_path: Path) -> None:
    orders = Table(spark, tmp_path, ORDERS)
    orders.take(*(change("c", key, 10 + key, commit=10) for key in (1, 2, 3)))
    truncation = change("t", 0, 30, commit=25)
    after = change("c", 3, 40, commit=35, status="new")
    found = orders.take(truncation, after, change("u", 2, 20, commit=18))
    assert found == {"applied": 2, "superseded": 1}
    assert [row[:2] for row in orders.rows()] == [(3, "new")]
    # Another application of the same table has only the tables to go by.
    other = Table(spark, tmp_path, ORDERS)
    other.batches, other.offset = orders.batches, orders.offset
    late = [change("u", 1, 22, commit=20), change("c", 9, 24, commit=20)]
    older = change("t", 0, 29, commit=24)
    assert other.take(*late, truncation, older) == {"superseded": 3, "duplicate": 1}
    assert [row[:2] for row in other.rows()] == [(3, "new")]


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["two batches", "one batch, history"])
def test_a_value_that_was_not_sent_is_taken_from_the_row_before(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    source = ORDERS.projection if entry is ORDERS else entry.projection
    # Nothing but the output column itself may read the large value.
    plain = entry.model_copy(update={"projection": source.partition(" WHERE")[0]})
    orders = Table(spark, tmp_path, plain)
    first = [
        change("c", 1, 10, commit=5, status="long text", amount="1.00"),
        change("u", 1, 20, commit=15, status=KEPT, amount="2.00"),
        change("u", 1, 25, commit=22, status=KEPT, amount="3.00"),
        change("u", 2, 20, commit=15, status=KEPT),
        change("c", 3, 20, commit=15, status="gone"),
        change("d", 3, 21, commit=20),
    ]
    second = [
        change("u", 1, 40, commit=35, status=KEPT, amount="4.00"),
        change("u", 3, 40, commit=35, status=KEPT),
        change("c", 4, 41, commit=35, status="other"),
        change("u", 4, 42, commit=35, status=KEPT, amount="9.00", at=43),
        change("u", 1, 20, commit=15, status=KEPT, amount="2.00"),
    ]
    for batch in (first, second) if entry is ORDERS else ([*first, *second],):
        orders.take(*batch)
    held = {row[0]: row[1] for row in orders.rows() if row[-1] is None or entry is ORDERS}
    assert held == {1: "long text", 4: "other"}
    assert {row[1] for row in orders.rows() if row[0] == 1} == {"long text"}
    assert orders.reasons() == [
        (3, "UNAVAILABLE_VALUE", "status"),
        (7, "UNAVAILABLE_VALUE", "status"),
    ]
    values = read(spark, orders.applier.tables.quarantine).select("value").collect()
    assert all(row[0] for row in values)


def test_what_cannot_be_placed_or_computed_is_kept_apart(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A WHERE over a value that was not sent, a NULL in the key, a deletion without its order."""
    entry = ORDERS.model_copy(
        update={
            "projection": "SELECT nullif(o.order_id, 7) AS order_id, o.status, o.amount AS twice "
            "FROM source AS o WHERE o.status <> 'hidden'",
            "sequence_by": "amount",
        }
    )
    orders = Table(spark, tmp_path, entry)
    records = [
        change("u", 1, 10, commit=5, amount="10"),
        change("u", 1, 20, commit=15, status=KEPT, amount="11"),
        change("u", 7, 20, commit=15, amount="12"),
        change("d", 1, 30, commit=25),
        change("t", 0, 40, commit=35),
    ]
    assert orders.take(*records) == {"applied": 1, "quarantined": 4}
    assert orders.reasons() == [
        (1, "UNAVAILABLE_VALUE", "status"),
        (2, "KEY_MISSING", "order_id"),
        (3, "SEQUENCE_MISSING", "amount"),
        (4, "SEQUENCE_MISSING", "amount"),
    ]


def test_a_rejected_truncation_leaves_the_rows_of_a_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without a time it has no place in the history, so the rows of all other keys stay."""
    orders = Table(spark, tmp_path, HISTORY)
    assert orders.take(*(change("c", key, 10 + key, commit=10) for key in (1, 2))) == {"applied": 2}
    _, value = change("t", 0, 30, commit=25)
    fields = json.loads(value or b"")
    timeless = None, json.dumps(fields | {"source": fields["source"] | {"ts_us": None}}).encode()
    found = orders.take(timeless, change("c", 3, 40, commit=35))
    assert found == {"applied": 1, "quarantined": 1}
    assert orders.reasons() == [(2, "SEQUENCE_MISSING", "source.ts_ms")]
    assert [row[0] for row in orders.rows()] == [1, 2, 3]

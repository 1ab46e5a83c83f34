"""Deletions that the connector did not send: found by key, applied after each row's changes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from spark_jobs.access.source_log import log_position
from spark_jobs.access.source_log import place as shown_place
from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.silver.repair.delete_backfill import MissedDeletion, missed_deletions
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.reader import read
from tests.servers import Postgres
from tests.spark.silver.world import CHANGES, HISTORY, ORDERS, Record, applier, bronze, change

FOUND_AT = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=500)


def incremental(key: int, reached: int) -> Record:
    """A row of an incremental snapshot, which has no position of its own."""
    place, value = change("r", key, 0)
    told = json.loads(value or b"")
    told["source"] |= {"lsn": None, "sequence": json.dumps([None, str(reached)])}
    return place, json.dumps(told).encode()


# Known of 1 to 4 is a snapshot's row, a change, an incremental snapshot's row and a change of its
# key; 5 is deleted, 6 was truncated away, 7 is there.
KNOWN = [
    change("c", 6, 5, commit=4),
    change("t", 0, 8, commit=7),
    change("r", 1, 10),
    change("c", 2, 20, commit=15),
    change("u", 2, 30, commit=25, status="paid"),
    incremental(3, 35),
    change("d", 40, 40, commit=38),
    change("c", 4, 40, commit=38),
    change("c", 5, 50, commit=45),
    change("d", 5, 60, commit=55),
    change("c", 7, 70, commit=65),
]
GONE = {1, 2, 3, 4}
SHOP = CHANGES.model_copy(update={"table": "public.orders"})


def missed(
    spark: SparkSession, server: Postgres, records: list[Record], there: set[int]
) -> list[MissedDeletion]:
    # The table has the key alone: no more of the rows is read than is compared.
    server.fill("public.orders", "order_id BIGINT", [(key,) for key in there])
    frame = bronze(spark, records)
    found = missed_deletions(spark, frame, SHOP, dsn=server.dsn, max_bytes=1000)
    return sorted(found.rows, key=lambda one: one.row["order_id"])


@pytest.mark.parametrize(
    "entry", [ORDERS, pytest.param(HISTORY, marks=pytest.mark.long)], ids=["current", "history"]
)
def test_a_backfilled_delete_ends_the_row_and_is_found_once(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, entry: SilverEntry
) -> None:
    silver = applier(Lake(str(tmp_path)), CHANGES, entry)
    silver.tables.create(spark, CHANGES)
    silver.apply(bronze(spark, KNOWN), 0)
    found = missed(spark, postgres, KNOWN, {7, 8})
    assert [one.row["order_id"] for one in found] == sorted(GONE)
    assert {one.partition for one in found} == {0}
    told: list[Record] = [
        record
        for one in found
        for record in ((one.key, one.delete_event(FOUND_AT)), (one.key, None))
    ]
    assert missed(spark, postgres, KNOWN + told, {7, 8}) == []

    # What comes later in the source's order stays, though it may be told before.
    back = change("c", 2, 900, commit=890, status="back")
    silver.apply(bronze(spark, [back], first=100), 1)
    batch = silver.apply(bronze(spark, told, first=200), 2)
    assert batch is not None
    assert batch.quarantined == 0
    rows = read(spark, silver.tables.table)
    if entry is HISTORY:
        ended = rows.where("valid_to IS NOT NULL AND order_id IN (1, 3, 4)").collect()
        assert {(row.order_id, row.valid_to.timestamp()) for row in ended} == {
            (key, FOUND_AT.timestamp()) for key in (1, 3, 4)
        }
        rows = rows.where("valid_to IS NULL")
    assert {(row.order_id, row.status) for row in rows.collect()} == {(2, "back"), (7, "placed")}


def test_a_row_that_was_deleted_during_the_snapshot_is_not_missed(
    spark: SparkSession, postgres: Postgres
) -> None:
    told = [change("r", 1, 10), change("r", 2, 10), change("d", 1, 8, first=True)]
    [found] = missed(spark, postgres, told, set())
    assert found.row == {"order_id": 2}


def test_a_backfilled_delete_gives_the_same_row_in_any_order(
    spark: SparkSession, tmp_path: Path, postgres: Postgres
) -> None:
    """Each row has another order, and all rows go through the same two batches."""
    orders = dict(enumerate(permutations(range(4)), start=1))
    known = {
        key: [change("c", key, 20, commit=15), change("u", key, 30, commit=25, status="paid")]
        for key in orders
    }
    gone = missed(spark, postgres, [one for told in known.values() for one in told], set())
    assert [one.row["order_id"] for one in gone] == list(orders)
    batches: list[list[Record]] = [[], []]
    for one in gone:
        key = one.row["order_id"]
        last = change("c", key, 38, commit=25)
        records = [*known[key], (one.key, one.delete_event(FOUND_AT)), last]
        for place, number in enumerate(orders[key]):
            batches[place // 2].append(records[number])
    silver = applier(Lake(str(tmp_path)), CHANGES, ORDERS)
    silver.tables.create(spark, CHANGES)
    for number, batch in enumerate(batches):
        silver.apply(bronze(spark, batch, first=number * len(batch)), number)
    rows = sorted((row.order_id, row.status) for row in read(spark, silver.tables.table).collect())
    assert rows == [(key, "placed") for key in orders]


def test_the_position_of_a_database_moves_as_the_runbook_says(postgres: Postgres) -> None:
    before = log_position(postgres.dsn)
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        message = "SELECT count(pg_logical_emit_message(false, 'tidemark', repeat('x', 100000)))"
        connection.execute(message)
        after = log_position(postgres.dsn)
        number = "SELECT pg_wal_lsn_diff(%s::pg_lsn, '0/0')::bigint"
        read = connection.execute(number, [shown_place(after)]).fetchone()
    # The last page of the log may not be written yet.
    assert after > before + 90_000
    assert read == (after,)

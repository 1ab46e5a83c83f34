"""Rows leave a silver table when their time is over, and nothing brings them back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Expiry
from spark_jobs.settings import Settings
from spark_jobs.silver.check import source_database
from spark_jobs.silver.check.source_database import compare_with_source
from spark_jobs.silver.repair import expiring
from spark_jobs.silver.repair.expiring import Expired
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.delta import CHANGE_TYPE
from spark_jobs.storage.reader import read
from spark_jobs.storage.tables import changes
from tests.servers import Postgres
from tests.spark.gold_project import GoldProject
from tests.spark.silver.test_rebuild import Live
from tests.spark.silver.world import (
    CHANGES,
    CLICKS,
    EVENTS,
    ORDERS,
    Record,
    bronze,
    change,
    columns,
    event,
)

DAYS = 30
CLICKS_LEAVE = CLICKS.model_copy(update={"expiry": Expiry(column="at", days=DAYS)})
TIMED = columns(order_id="bigint", status="string", placed_on="date")
SHOP = CHANGES.model_copy(update={"columns": TIMED, "table": "public.orders"})
ORDERS_LEAVE = ORDERS.model_copy(
    update={
        "projection": "SELECT o.order_id, o.status, o.placed_on FROM source AS o",
        "columns": TIMED,
        "expiry": Expiry(column="placed_on", days=DAYS),
    }
)
# Records arrive on the second of January; what expires then came before December.
SOON = datetime(2026, 1, 3, tzinfo=UTC)
# The second of January is the oldest day that stays.
LATER = datetime(2026, 2, 1, 12, tzinfo=UTC)


class CrashError(Exception):
    """Simulates a kill."""


class Clock:
    def __init__(self) -> None:
        self.now = SOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(source_database, "utc_now", found)
    return found


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def order(operation: str, key: int, position: int, *, on: str, status: str = "placed") -> Record:
    """A change of an order that was placed on a day."""
    place, value = change(operation, key, position, commit=position, status=status)
    told = json.loads(value or b"")
    told["after"]["placed_on"] = on
    return place, json.dumps(told).encode()


def follow(live: Live, *frames: DataFrame) -> None:
    for frame in frames:
        live.land(frame)
    with live.following() as query:
        query.processAllAvailable()


def expire(live: Live, clock: Clock) -> Expired:
    expiry = live.entry.expiry
    assert expiry is not None
    return live.flow.expirer(live.spark, expiry).run(now=clock.now)


@contextmanager
def killed(point: str) -> Iterator[None]:
    """What is in the block ends at a point."""

    def crash(where: str) -> None:
        if where == point:
            raise CrashError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expiring, "failpoint", crash)
        with pytest.raises(CrashError):
            yield


def keys(live: Live, column: str) -> list[Any]:
    return sorted(row[0] for row in read(live.spark, live.tables.table).select(column).collect())


def read_again(live: Live, *frames: DataFrame) -> None:
    """Read bronze from its start, as after the loss of a checkpoint, and what came meanwhile."""
    live.store.bump_epoch(live.flow.name, reason="a test")
    follow(live, *frames)


def test_events_leave_in_one_commit_and_stay_away(
    spark: SparkSession,
    settings: Settings,
    store: ControlStore,
    clock: Clock,
) -> None:
    live = Live(spark, settings, store, (EVENTS, CLICKS_LEAVE), now=clock)
    first = event(event_id="first", user_id=1, at="2026-01-01T23:59:59Z")
    second = event(event_id="second", user_id=1, at="2026-01-02T00:00:00Z")
    timeless = event(event_id="timeless", user_id=1)
    late = event(event_id="late", user_id=1, at="2025-11-30T00:00:00Z")
    follow(live, bronze(spark, [first, second, timeless, late]))
    assert keys(live, "event_id") == ["first", "second", "timeless"]
    assert expire(live, clock).rows == 0

    clock.now = LATER

    with killed("expiry.after_count"):
        expire(live, clock)
    version = live.versions()[0]
    left = expire(live, clock)
    assert (left.rows, left.version) == (1, version + 1)
    assert keys(live, "event_id") == ["second", "timeless"]
    feed = changes(spark, live.tables.table, after=version, upto=version + 1)
    assert [tuple(row) for row in feed.select("event_id", CHANGE_TYPE).collect()] == [
        ("first", "delete")
    ]
    live.assert_balanced()
    assert expire(live, clock) == Expired(table=left.table, before=left.before, rows=0)

    # All records are read again, and the producer sends some again.
    read_again(live, bronze(spark, [first, late], first=10))
    live.assert_balanced()
    assert keys(live, "event_id") == ["second", "timeless"]
    # What has expired by the time of a rebuild leaves with it, and nothing else differs.
    clock.now = LATER + timedelta(days=1)
    made = live.run()
    assert (made.leave, made.enter, made.rejected) == (1, 0, 0)
    assert keys(live, "event_id") == ["timeless"]
    live.assert_balanced()


def test_current_rows_leave_and_no_change_of_before_brings_them_back(
    spark: SparkSession,
    settings: Settings,
    store: ControlStore,
    clock: Clock,
    postgres: Postgres,
) -> None:
    live = Live(spark, settings, store, (SHOP, ORDERS_LEAVE), now=clock)
    orders = [
        order("c", 1, 30, on="2026-01-01"),
        order("c", 2, 20, on="2026-01-02"),
        order("c", 3, 20, on="2025-11-01"),
        # What moves to another day leaves on that one.
        order("c", 4, 20, on="2026-01-05"),
        order("u", 4, 40, on="2025-11-01"),
    ]
    follow(live, bronze(spark, orders))
    assert keys(live, "order_id") == [1, 2]

    clock.now = LATER

    with killed("expiry.after_tombstones"):
        expire(live, clock)
    assert expire(live, clock).rows == 1
    assert keys(live, "order_id") == [2]
    # An older change, and what a new snapshot reads of the row, which the shop still has. An
    # order that is moved to a day of now is there again.
    older = bronze(spark, [order("u", 1, 10, on="2026-01-20")], first=10)
    newer = [order("r", 1, 90, on="2026-01-01"), order("u", 3, 95, on="2026-01-30")]
    month = sf.expr("arrived_at + INTERVAL 31 DAYS")
    read_again(live, older, bronze(spark, newer, first=20).withColumn("arrived_at", month))
    assert keys(live, "order_id") == [2, 3]
    live.assert_balanced()
    assert live.preview().right
    days = {1: "2026-01-01", 2: "2026-01-02", 3: "2026-01-30"}
    source = [(key, "placed", day) for key, day in days.items()]
    postgres.fill("public.orders", "order_id BIGINT, status TEXT, placed_on DATE", source)
    table = read(spark, live.tables.table)
    found = compare_with_source(spark, table, SHOP, ORDERS_LEAVE, dsn=postgres.dsn, max_bytes=1000)
    assert found.equal


def test_current_rows_that_left_do_not_come_back_with_their_own_records(
    spark: SparkSession, settings: Settings, store: ControlStore, clock: Clock
) -> None:
    live = Live(spark, settings, store, (SHOP, ORDERS_LEAVE), now=clock)
    orders = [order("c", 1, 30, on="2026-01-01"), order("c", 2, 40, on="2026-01-02")]
    follow(live, bronze(spark, orders))
    clock.now = LATER
    assert expire(live, clock).rows == 1
    read_again(live)
    assert keys(live, "order_id") == [2]
    live.assert_balanced()
    assert live.preview().right


BY_USER = """SELECT c.user_id, COUNT(*) AS clicks, SUM(c.amount) AS amount, MAX(c.event_id) AS last
FROM silver.clicks AS c GROUP BY c.user_id"""
USERS = "SELECT COUNT(*) AS users, SUM(b.clicks) AS clicks FROM gold.by_user AS b"


def test_views_over_the_table_retract_what_left_it(
    spark: SparkSession, settings: Settings, store: ControlStore, clock: Clock
) -> None:
    live = Live(spark, settings, store, (EVENTS, CLICKS_LEAVE), now=clock)
    gold = GoldProject(spark, settings, store)
    # User 1 loses the newest click, user 3 the only one, nobody's user one of two.
    clicks = [("a", 1, 1), ("b", 1, 2), ("c", 1, 1), ("d", 2, 20), ("e", None, 2)]
    clicks += [("f", 3, 1), ("g", None, 1)]
    records = [
        event(event_id=name, user_id=user, at=f"2026-01-{day:02}T12:00:00Z", amount="1.25")
        for name, user, day in clicks
    ]
    follow(live, bronze(spark, records))
    gold.view("by_user", BY_USER, inputs=("silver.clicks",), maintained=True)
    gold.refresh("by_user", "before")
    gold.view("users", USERS, inputs=("gold.by_user",), maintained=True)
    gold.refresh("users", "before")
    assert gold.rows("users") == [(4, 7)]

    clock.now = LATER
    assert expire(live, clock).rows == 4
    for view in ("by_user", "users"):
        assert gold.refresh(view, "after").plan.reason.code == "INPUT_CHANGED_RULE"
        gold.assert_right(view)
    one = Decimal("1.25")
    left = [(None, 1, one, "e"), (1, 1, one, "b"), (2, 1, one, "d")]
    assert gold.rows("by_user") == left
    assert gold.rows("users") == [(3, 3)]

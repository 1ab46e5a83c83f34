"""What is forgotten is in no table and, when past files have gone, in no file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.planning.errors import DeletionTooLargeError
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import ForgetColumnError, ForgetPendingError, ForgetValueError
from spark_jobs.silver.repair.forgetting import Forgetting
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.cleaning import past_files, remove_files
from spark_jobs.storage.log import table_version
from spark_jobs.storage.reader import read
from tests.spark.gold_project import GoldProject
from tests.spark.silver.test_rebuild import REASON, Live
from tests.spark.silver.world import (
    CHANGES,
    CLICKS,
    EVENTS,
    HISTORY,
    ORDERS,
    bronze,
    change,
    event,
)
from tests.unit.storage.aging import age

SECRET = "Zq7-secret"
WHO = {"events": {"user_id": "7"}, "history": {"order_id": "7"}}
KINDS = {
    "events": (EVENTS, CLICKS),
    "history": (CHANGES, HISTORY),
}
PAST = timedelta(days=30)


def clicks(spark: SparkSession, first: int) -> DataFrame:
    """Of the one to be forgotten: an event, the same again, and one that is rejected."""
    secret = event(event_id=f"{SECRET}-{first}", user_id=7)
    broken = event(event_id=f"{SECRET}-broken-{first}", user_id=7, amount="x")
    others = [event(event_id=f"e{first}-{one}", user_id=one) for one in range(4)]
    return bronze(spark, [secret, *others, secret, broken], first=first)


def orders(spark: SparkSession, first: int) -> DataFrame:
    """Of the one to be forgotten: a row, another value of it, its deletion and its tombstone."""
    secret = [
        change("c", 7, first + 1, status=SECRET),
        change("u", 7, first + 2, status=f"{SECRET} 2"),
        *([change("d", 7, first + 3)] if first else []),
    ]
    others = [change("c", first + 100 + one, first + 4 + one) for one in range(4)]
    return bronze(spark, [*secret, *others], first=first)


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def forgetting(live: Live) -> Forgetting:
    return Forgetting(
        spark=live.spark,
        source=live.source,
        bronze=live.bronze,
        tables=[live.flow.rebuilder(live.spark)],
        max_bytes=10_000,
    )


@pytest.mark.parametrize("kind", ["events", pytest.param("history", marks=pytest.mark.long)])
def test_a_person_leaves_every_table_and_every_file(
    spark: SparkSession, settings: Settings, store: ControlStore, kind: str
) -> None:
    live = Live(spark, settings, store, KINDS[kind])
    landing, known = {"events": (clicks, 6), "history": (orders, 5)}[kind]
    with live.following() as query:
        live.land(landing(spark, 0))
        query.processAllAvailable()
    live.land(landing(spark, 50))
    version = table_version(live.bronze)
    with pytest.raises(ForgetPendingError) as caught:
        forgetting(live).run(WHO[kind], **REASON)
    assert caught.value.table == live.entry.name
    assert table_version(live.bronze) == version
    with live.following() as query:
        query.processAllAvailable()
    assert {place for place in tables_of(live) if held(place)} >= {live.bronze, live.tables.table}
    rows = others_of(live)

    assert forgetting(live).run(WHO[kind], **REASON).records == known
    assert not [one for one in tables_of(live) if SECRET in shown(live, one)]
    assert others_of(live) == rows
    live.assert_balanced()
    assert forgetting(live).preview(WHO[kind]).records == 0

    live.land(bronze(spark, last(kind), first=90))
    with live.following() as query:
        query.processAllAvailable()
    live.assert_balanced()
    assert len(others_of(live)) == len(rows) + 1

    clean(*tables_of(live))
    assert not [file for place in tables_of(live) for file in held(place)]


def last(kind: str) -> list[tuple[bytes | None, bytes | None]]:
    if kind == "events":
        return [event(event_id="last", user_id=1)]
    return [change("c", 999, 999)]


def test_gold_follows_to_the_bytes(gold: GoldProject) -> None:
    gold.append("silver.orders", f"SELECT 9L AS order_id, '{SECRET}' AS customer, 1.00BD AS amount")
    gold.refresh("totals", "t1")
    location = gold.location("gold.totals")
    assert held(location)
    gold.execute("DELETE FROM {} WHERE order_id = 9", "silver.orders")
    gold.refresh("totals", "t2")
    clean(location, gold.location("silver.orders"))
    assert not held(location)
    assert not held(gold.location("silver.orders"))


def test_a_change_is_reported_by_its_key_only(
    spark: SparkSession, settings: Settings, store: ControlStore
) -> None:
    live = Live(spark, settings, store, KINDS["history"])
    with pytest.raises(ForgetColumnError) as caught:
        forgetting(live).preview({"status": SECRET})
    assert caught.value.column == "status"


def test_a_value_that_no_record_can_have_is_refused(
    spark: SparkSession, settings: Settings, store: ControlStore
) -> None:
    live = Live(spark, settings, store, KINDS["history"])
    with pytest.raises(ForgetValueError) as caught:
        forgetting(live).preview({"order_id": SECRET})
    assert caught.value.kind == "BIGINT"
    assert SECRET not in str(caught.value)


def test_the_key_of_a_row_that_was_deleted_before_a_truncation_goes_too(
    spark: SparkSession, settings: Settings, store: ControlStore
) -> None:
    live = Live(spark, settings, store, (CHANGES, ORDERS))
    first = [change("c", 7, 11), change("d", 7, 12), change("c", 8, 13), change("d", 8, 14)]
    second = [change("t", 0, 20, commit=20), change("c", 9, 31)]
    for records in (bronze(spark, first), bronze(spark, second, first=10)):
        live.land(records)
        with live.following() as query:
            query.processAllAvailable()
    buried = read(spark, live.tables.tombstones).select("order_id").collect()
    assert {row[0] for row in buried} == {7, 8, None}
    found = forgetting(live).run({"order_id": "7"}, **REASON)
    assert found.records == 2
    kept = read(spark, live.tables.tombstones).select("order_id").collect()
    assert {row[0] for row in kept} == {8, None}
    assert live.preview().right
    live.assert_balanced()


def tables_of(live: Live) -> list[str]:
    places = [live.bronze, *live.tables.places, live.tables.releases]
    return [place for place in places if table_version(place) is not None]


def shown(live: Live, place: str) -> str:
    return str([tuple(row) for row in read(live.spark, place).collect()])


def others_of(live: Live) -> list[str]:
    rows = read(live.spark, live.tables.table).drop("__partition", "__offset").collect()
    return sorted(str(tuple(row)) for row in rows if SECRET not in str(row) and 7 not in row[:2])


def clean(*places: str) -> None:
    """As `tidemark maintain` does, a month later."""
    for place in places:
        age(place, PAST.days)
        now = datetime.now(UTC)
        remove_files(place, past_files(place, since=now - timedelta(days=7), now=now))


def held(place: str) -> list[Path]:
    """The data files in which the secret stands, by their bytes or by their values."""
    return [
        file
        for file in Path(place).rglob("*.parquet")
        if "_delta_log" not in file.parts
        and (SECRET.encode() in file.read_bytes() or SECRET in str(pq.read_table(file).to_pylist()))
    ]


def test_many_records_are_forgotten_only_where_that_is_meant(
    spark: SparkSession, settings: Settings, store: ControlStore
) -> None:
    live = Live(spark, settings, store, KINDS["events"])
    records = [event(event_id=str(number), user_id=7) for number in range(101)]
    live.land(bronze(spark, records))
    version = table_version(live.bronze)
    preview = forgetting(live).preview(WHO["events"])
    assert (preview.records, preview.among) == (101, 101)
    assert [one["user_id"] for one in preview.examples] == [7] * 5
    with pytest.raises(DeletionTooLargeError) as caught:
        forgetting(live).run(WHO["events"], **REASON)
    assert (caught.value.rows, caught.value.among) == (101, 101)
    # The next question is asked then, and answered: nothing took these records up yet.
    with pytest.raises(ForgetPendingError):
        forgetting(live).run(WHO["events"], **REASON, let_pass=True)
    assert table_version(live.bronze) == version

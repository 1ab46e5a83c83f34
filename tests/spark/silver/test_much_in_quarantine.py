"""A view whose input lacks what is in quarantine waits, until a person has looked."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.sections import BreakerSettings
from spark_jobs.settings import Settings
from spark_jobs.silver.repair.requests import ReprocessRequest
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.reader import read
from tests.spark.gold_project import GoldProject
from tests.spark.silver.test_rebuild import Live
from tests.spark.silver.world import CLICKS, EVENTS, Record, bronze, event

BY_USER = "SELECT c.user_id, COUNT(*) AS clicks FROM silver.clicks AS c GROUP BY c.user_id"
LIMITS = BreakerSettings(quarantined_rows=2, quarantined_share=0.25)


def good(*names: str) -> list[Record]:
    return [event(event_id=name, user_id=1) for name in names]


def bad(*names: str) -> list[Record]:
    return [event(event_id=name, user_id="nobody") for name in names]


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


@pytest.fixture
def live(spark: SparkSession, settings: Settings, store: ControlStore) -> Live:
    return Live(spark, settings, store, (EVENTS, CLICKS))


def test_it_waits_until_they_are_reprocessed_or_somebody_lets_it_pass(
    spark: SparkSession, settings: Settings, store: ControlStore, live: Live
) -> None:
    gold = GoldProject(spark, settings.model_copy(update={"breaker": LIMITS}), store)
    first = 0

    def follow(*records: Record) -> None:
        nonlocal first
        live.land(bronze(spark, list(records), first=first))
        first += len(records)
        with live.following() as query:
            query.processAllAvailable()

    # Of a first build nobody waits, however much was rejected before.
    follow(*good("a", "b"), *bad("p", "q", "r"))
    gold.view("by_user", BY_USER, inputs=("silver.clicks",), maintained=True)
    gold.refresh("by_user", "first")
    assert gold.rows("by_user") == [(1, 2)]

    follow(*good("c"), *bad("s", "t"))
    assert gold.refresh("by_user", "few").version is not None, "two are always there"
    follow(*good("d"), *bad("u", "v", "w"))
    waits = gold.refresh("by_user", "much").plan
    assert waits.reason.code == "WAITS_FOR_PERSON"
    assert "3 of 4 new records of silver.clicks are in quarantine" in waits.line
    assert gold.rows("by_user") == [(1, 3)]

    reprocessor = live.flow.reprocessor(spark)
    value = json.dumps({"event_id": "u", "user_id": 2}).encode()
    held = sorted((row.partition, row.offset) for row in quarantined(live, "u"))
    reprocessor.run(ReprocessRequest(by="me@here", values=dict.fromkeys(held, value)))
    assert gold.refresh("by_user", "reprocessed").version is not None
    assert gold.rows("by_user") == [(1, 4), (2, 1)]
    gold.assert_right("by_user")

    follow(*good("e"), *bad("x", "y", "z"))
    assert gold.refresh("by_user", "again").plan.reason.code == "WAITS_FOR_PERSON"
    passed = gold.refresher.run("by_user", tick="passed", let_pass="let pass by ann: known")
    assert passed.plan.line.endswith("are in quarantine; let pass by ann: known")
    assert gold.rows("by_user") == [(1, 5), (2, 1)]


def quarantined(live: Live, event_id: str) -> list[Row]:
    """Where the records of an event lie that are in quarantine."""
    text = sf.col("value").cast("string")
    found = read(live.spark, live.tables.quarantine).where(text.contains(f'"{event_id}"'))
    return found.select("partition", "offset").collect()

"""A process that is killed while it changes silver or bronze is made good by the next."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.sections import MaintenanceSettings
from spark_jobs.settings import Settings
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log
from tests.spark.killed import kill_at, own_spark
from tests.spark.silver.test_expiry import CLICKS_LEAVE, LATER, SOON, keys
from tests.spark.silver.test_rebuild import REASON, Live
from tests.spark.silver.world import CLICKS, EVENTS, bronze, event
from tests.spark.test_landing import World

# Each starts a JVM of its own.
pytestmark = pytest.mark.long


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def rebuild(settings: Settings) -> None:
    with own_spark(settings) as spark, ControlStore.open(settings.control_url) as store:
        SilverFlow(EVENTS, CLICKS, settings, store).rebuilder(spark).run(**REASON)


def expire(settings: Settings, now: datetime) -> None:
    assert CLICKS_LEAVE.expiry is not None
    with own_spark(settings) as spark, ControlStore.open(settings.control_url) as store:
        SilverFlow(EVENTS, CLICKS_LEAVE, settings, store).expirer(spark, CLICKS_LEAVE.expiry).run(
            now=now
        )


def land(settings: Settings, folder: Path) -> None:
    with own_spark(settings) as spark:
        World(spark, folder, MaintenanceSettings()).land(0, range(3))


@pytest.mark.parametrize(
    "point", ["rebuild.built", "rebuild.after_quarantine", "rebuild.after_table"]
)
def test_an_interrupted_rebuild_continues(
    spark: SparkSession, settings: Settings, store: ControlStore, point: str
) -> None:
    live = Live(spark, settings, store, (EVENTS, CLICKS))
    live.land(bronze(spark, [event(event_id="a", user_id="x"), event(event_id="b", user_id=1)]))
    with live.following() as query:
        query.processAllAvailable()
    before = live.content()
    live.sql("DELETE FROM THE_TABLE WHERE offset = 0", live.tables.quarantine)
    live.sql("UPDATE THE_TABLE SET user_id = 77", live.tables.table)
    kill_at(point, rebuild, settings)
    live.run()
    assert live.content() == before
    assert live.run().right
    live.assert_balanced()


@pytest.mark.parametrize("point", ["expiry.after_count", "expiry.after_tombstones"])
def test_an_interrupted_expiry_continues(
    spark: SparkSession,
    settings: Settings,
    store: ControlStore,
    point: str,
) -> None:
    live = Live(spark, settings, store, (EVENTS, CLICKS_LEAVE), now=lambda: SOON)
    old = event(event_id="old", user_id=1, at="2026-01-01T23:59:59Z")
    live.land(bronze(spark, [old, event(event_id="new", user_id=1, at="2026-01-02T00:00:00Z")]))
    with live.following() as query:
        query.processAllAvailable()
    assert keys(live, "event_id") == ["new", "old"]
    version = live.versions()[0]
    kill_at(point, expire, settings, LATER)
    assert live.versions()[0] == version
    expire_here = live.flow.expirer(spark, CLICKS_LEAVE.expiry)  # type: ignore[arg-type]
    assert expire_here.run(now=LATER).rows == 1
    assert keys(live, "event_id") == ["new"]
    live.assert_balanced()


def test_a_landed_batch_is_known(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    kill_at("bronze.after_append", land, settings, tmp_path)
    world = World(spark, tmp_path, MaintenanceSettings())
    version = log.table_version(world.landing.table)
    assert version
    world.land(0, range(3))
    assert log.table_version(world.landing.table) == version
    assert world.offsets == [0, 1, 2]

"""Whatever happens to a silver stream's checkpoint, the table ends as without it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.settings import Settings
from spark_jobs.state.store import ControlStore
from tests.spark.silver.test_rebuild import Live, clicks
from tests.spark.silver.world import CLICKS, EVENTS


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def newest(folder: Path) -> Path:
    """The file of the last batch; Hadoop keeps a checksum beside it, which is then wrong too."""
    return max(
        (one for one in folder.iterdir() if one.name.isdecimal()), key=lambda one: int(one.name)
    )


FAULTS: dict[str, Callable[[Path, Path], object]] = {
    "deleted": lambda live, _: shutil.rmtree(live),
    "an empty file of offsets": lambda live, _: newest(live / "offsets").write_text(""),
    "an older copy": lambda live, older: (shutil.rmtree(live), older.rename(live)),
}


@pytest.mark.parametrize("harm", FAULTS.values(), ids=FAULTS)
def test_the_table_ends_as_without_the_fault(
    spark: SparkSession,
    settings: Settings,
    store: ControlStore,
    tmp_path: Path,
    harm: Callable[[Path, Path], object],
) -> None:
    live = Live(spark, settings, store, (EVENTS, CLICKS))
    first, second, third = clicks(spark)
    checkpoint = Path(live.flow.checkpoint(1))
    with live.following() as query:
        live.land(first)
        query.processAllAvailable()
    shutil.copytree(checkpoint, tmp_path / "older")
    with live.following() as query:
        live.land(second)
        query.processAllAvailable()
    before = live.content()
    harm(checkpoint, tmp_path / "older")
    live.land(third)
    with live.following() as query:
        query.processAllAvailable()
    assert store.epoch(live.flow.name) == 2
    live.assert_balanced()
    rows: Counter[str] = live.content()[0]
    # Every row of before is there once, and so are the new ones.
    assert rows >= before[0]
    ids = [one.event_id for one in spark.read.format("delta").load(live.tables.table).collect()]
    assert len(ids) == len(set(ids)) > before[0].total()


@pytest.mark.parametrize("recreated", [False, True], ids=["an older copy", "recreated"])
def test_the_table_ends_as_if_bronze_had_not_been_replaced(
    spark: SparkSession,
    settings: Settings,
    store: ControlStore,
    tmp_path: Path,
    recreated: bool,
) -> None:
    live = Live(spark, settings, store, (EVENTS, CLICKS))
    first, second, third = clicks(spark)
    with live.following() as query:
        live.land(first)
        query.processAllAvailable()
        shutil.copytree(live.bronze, tmp_path / "older")
        halves = [second.where("offset < 75"), second.where("offset >= 75")]
        for half in halves:
            live.land(half)
        query.processAllAvailable()
    before = live.content()
    shutil.rmtree(live.bronze)
    if recreated:
        Live(spark, settings, store, (EVENTS, CLICKS))
    else:
        (tmp_path / "older").rename(live.bronze)
    with live.following() as query:
        # Bronze reads its topic on, from what its table has.
        for records in ([first] if recreated else []) + halves + [third]:
            live.land(records)
        query.processAllAvailable()
    assert store.epoch(live.flow.name) == 2
    live.assert_balanced()
    rows: Counter[str] = live.content()[0]
    assert rows > before[0]

"""Batches of events and of changes: what is applied, what is counted, and what a re-run does."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import Expiry, SilverEntry
from spark_jobs.sections import Engine, MaintenanceSettings
from spark_jobs.silver.apply import batch as batch_module
from spark_jobs.silver.apply import current_rows
from spark_jobs.silver.apply import scd2_rows as history_rows
from spark_jobs.silver.apply.outcome import HeldTables
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import size
from spark_jobs.storage.reader import read
from tests.spark.silver.both_ways import apply_both_ways, feed, started, written
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
    columns,
    counts,
    event,
)

# A column of each type that means the same without Spark.
SOURCE = CHANGES.model_copy(
    update={"columns": columns(order_id="string", status="string", amount="decimal(12,2)")}
)
WIDE = ORDERS.model_copy(
    update={
        "projection": "SELECT s.order_id, s.status, s.amount, DOUBLE('NaN') "
        "AS ratio, TIMESTAMP_SECONDS(s.amount) AS at, CAST(s.status AS BINARY) AS raw, "
        "ARRAY(s.status, NULL) AS list, NAMED_STRUCT('x', s.amount) AS part, "
        "MAP('k', s.status) AS pairs FROM source AS s",
        "columns": columns(
            order_id="string",
            status="string",
            amount="decimal(12,2)",
            ratio="double",
            at="timestamp",
            raw="binary",
            list="array<string>",
            part="struct<x:decimal(12,2)>",
            pairs="map<string,string>",
        ),
    }
)


class CrashError(Exception):
    """Simulates a kill."""


def rows(spark: SparkSession, location: str, *names: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in read(spark, location).select(*names).collect())


EVENT_RECORDS: list[Record] = [
    event(event_id="a", user_id=1, amount=1.5),
    event(event_id="a", user_id=2),
    event(event_id="b", user_id=-1),
    event(event_id="c", user_id="x"),
    (b"k", None),
    event(event_id="d"),
]


def test_events_are_applied_once(spark: SparkSession, tmp_path: Path) -> None:
    clicks, _ = started(spark, tmp_path, EVENTS, CLICKS)
    first = {"applied": 2, "duplicate": 1, "ignored": 2, "quarantined": 1}
    assert counts(clicks.apply(bronze(spark, EVENT_RECORDS), 0)) == first
    assert counts(clicks.apply(bronze(spark, EVENT_RECORDS), 0)) == first
    again = clicks.apply(bronze(spark, EVENT_RECORDS[:1], first=10), 1)
    assert counts(again) == {"duplicate": 1}
    assert clicks.apply(bronze(spark, []), 2) is None
    assert rows(spark, clicks.tables.table, "event_id", "user_id", "amount", "__offset") == [
        ("a", 1, Decimal("1.50"), 0),
        ("d", None, None, 5),
    ]
    quarantine = rows(spark, clicks.tables.quarantine, "offset", "reason", "detail", "value")
    assert quarantine == [(3, "TYPE_MISMATCH", "user_id", EVENT_RECORDS[3][1])]


def test_a_new_epoch_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    clicks, _ = started(spark, tmp_path, EVENTS, CLICKS)
    before = clicks.apply(bronze(spark, EVENT_RECORDS), 0)
    after = replace(clicks, epoch=2).apply(bronze(spark, EVENT_RECORDS), 0)
    assert counts(before) == counts(after)
    assert read(spark, clicks.tables.table).count() == 2
    assert read(spark, clicks.tables.quarantine).count() == 1


@pytest.mark.parametrize("engine", [Engine.AUTO, Engine.SPARK])
def test_bronze_with_other_arrivals_applies_the_same_records(
    spark: SparkSession, tmp_path: Path, engine: Engine
) -> None:
    clicks = applier(Lake(str(tmp_path)), EVENTS, CLICKS, engine=engine)
    clicks.tables.create(spark, EVENTS)
    frame = bronze(spark, [event(event_id="a", user_id=user) for user in (1, 2)])
    assert counts(clicks.apply(frame, 0)) == {"applied": 1, "duplicate": 1}
    # As after a restore of bronze that landed the partitions in another order.
    restored = frame.withColumn(
        "arrived_at", sf.expr("arrived_at - MAKE_INTERVAL(0, 0, 0, offset)")
    )
    found = replace(clicks, epoch=2).apply(restored, 0)
    assert counts(found) == {"applied": 1, "duplicate": 1}
    assert rows(spark, clicks.tables.table, "user_id") == [(1,)]


def test_an_event_id_that_the_select_leaves_out_still_counts(
    spark: SparkSession, tmp_path: Path
) -> None:
    entry = CLICKS.model_copy(
        update={
            "event_id": None,
            "projection": "SELECT user_id FROM source",
            "columns": EVENTS.columns[1:2],
        }
    )
    clicks, _ = started(spark, tmp_path, EVENTS, entry)
    clicks.apply(bronze(spark, EVENT_RECORDS), 0)
    assert counts(clicks.apply(bronze(spark, EVENT_RECORDS[:1], first=10), 1)) == {"duplicate": 1}


def test_changes_apply_in_the_order_of_commits(spark: SparkSession, tmp_path: Path) -> None:
    orders, _ = started(spark, tmp_path, CHANGES, ORDERS)
    first = [
        change("r", 1, 100, amount="1.00"),
        change("r", 2, 100),
        change("u", 1, 130, commit=120, amount="3.00"),
        # Written before and committed after: the later commit wins.
        change("u", 1, 110, commit=140, amount="4.00"),
        change("c", 3, 150, commit=140, status="hidden"),
        change("d", 9, 160, commit=140),
    ]
    assert counts(orders.apply(bronze(spark, first), 0)) == {"applied": 4, "superseded": 2}
    names = ("order_id", "twice", "__offset")
    table = [(1, Decimal("8.00"), 3), (2, Decimal("3.00"), 1)]
    assert rows(spark, orders.tables.table, *names) == table
    late = [
        change("u", 1, 130, commit=120, amount="3.00"),
        change("u", 1, 110, commit=140, amount="4.00"),
        change("u", 9, 150, commit=140),
        change("u", 2, 170, commit=160, status="hidden"),
        (b'{"order_id": 2}', None),
    ]
    found = orders.apply(bronze(spark, late, first=20), 1)
    assert counts(found) == {"superseded": 2, "duplicate": 1, "applied": 1, "ignored": 1}
    assert rows(spark, orders.tables.table, *names) == table[:1]
    back = [change("u", 2, 190, commit=180, amount="0.50"), change("d", 1, 195, commit=180)]
    assert counts(orders.apply(bronze(spark, back, first=30), 2)) == {"applied": 2}
    assert rows(spark, orders.tables.table, *names) == [(2, Decimal("1.00"), 30)]


CHANGE_BATCHES: list[list[Record]] = [
    [change("r", key, 100) for key in (1, 2, 3)],
    [
        change("d", 1, 210, commit=200),
        change("u", 2, 220, commit=200, amount="7.00"),
        change("u", 2, 215, commit=200),
        change("c", 4, 230, commit=200),
        change("d", 8, 230, commit=200),
        change("t", 0, 204, commit=200),
        (b"{}", b"{"),
    ],
    [change("u", 1, 205, commit=200), change("c", 1, 310, commit=300), change("u", 8, 1, commit=1)],
]
POINTS = (
    "silver.before_quarantine",
    "silver.after_quarantine",
    "silver.after_tombstones",
    "silver.after_apply",
    "silver.after_record",
)


# What only a history has.
HISTORY_POINTS = ("silver.after_changes",)


@pytest.mark.parametrize(
    ("entry", "points"), [(ORDERS, POINTS), (HISTORY, HISTORY_POINTS)], ids=["current", "history"]
)
def test_a_batch_that_was_cut_off_ends_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry: SilverEntry,
    points: tuple[str, ...],
) -> None:
    """A batch is cut off at points and then run to its end, beside an undisturbed twin."""
    calm, calm_record = started(spark, tmp_path / "calm", CHANGES, entry)
    cut, cut_record = started(spark, tmp_path / "cut", CHANGES, entry)
    armed, fired = [""], set()

    def crash(name: str) -> None:
        if name == armed[0]:
            fired.add(name)
            raise CrashError(name)

    for module in (batch_module, current_rows, history_rows):
        monkeypatch.setattr(module, "failpoint", crash)
    first = 0
    for number, records in enumerate(CHANGE_BATCHES if entry is ORDERS else CHANGE_BATCHES[:2]):
        frame = bronze(spark, records, first=first)
        calm.apply(frame, number)
        # The first batch and the last pass few of them.
        for armed[0] in (*(points if number == 1 else ()), ""):
            # A process that starts again knows nothing but the tables.
            # Not each batch passes each point.
            with suppress(CrashError):
                read_by_stream, apply = replace(cut, held=HeldTables()).streamed(frame)
                apply(read_by_stream, number)
        first += len(records)
    assert fired == set(points)
    assert {batch.batch_id: batch for batch in cut_record} == dict(enumerate(calm_record))
    names = [column.name for column in calm.tables.columns]
    assert rows(spark, cut.tables.table, *names) == rows(spark, calm.tables.table, *names)
    for place in calm.tables.places[1:]:
        other = place.replace("/calm/", "/cut/")
        assert read(spark, place).count() == read(spark, other).count()


PLAIN_BATCHES: list[list[Record]] = [
    [change("r", key, 100, status=f"s{key}") for key in range(1, 6)],
    [
        change("u", 1, 210, commit=200, amount="7.00"),
        change("u", 2, 1, commit=1, amount="8.00"),
        change("d", 3, 220, commit=200),
        change("d", 8, 230, commit=200),
        change("c", 6, 240, commit=200),
    ],
    [change("c", 3, 310, commit=300), change("u", 6, 320, commit=300), change("c", 8, 5, commit=4)],
    [change("d", 9, 330, commit=320)],
]


@pytest.mark.parametrize(
    "entry", [pytest.param(ORDERS, marks=pytest.mark.long), WIDE], ids=["by number", "by text"]
)
def test_few_rows_are_written_as_spark_writes_them(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    """The same rows, the same change feed, the same counts, and each batch once."""
    source = CHANGES if entry is ORDERS else SOURCE
    plain, here_record = started(spark, tmp_path / "here", source, entry)
    here = replace(plain, maintenance=MaintenanceSettings(small_files=2))
    there, there_record = started(spark, tmp_path / "there", source, entry)
    apply_both_ways(spark, here, there, PLAIN_BATCHES)
    assert here_record == there_record
    assert feed(spark, here.tables.table) == feed(spark, there.tables.table)
    writers = [
        {commit.get("engineInfo", "").split("/")[0].split(":")[0] for commit in written(one)}
        for one in (here.tables.table, here.tables.tombstones, there.tables.table)
    ]
    assert writers == [{"delta-rs"}, {"delta-rs"}, {"Apache-Spark"}]
    assert size(here.tables.table).files == 1


def few_events(random: Random) -> list[Record]:
    """Some of each kind: new, known, twice, left out by the SELECT, broken, too old, and empty."""
    when = ("2026-01-02T00:00:00Z", "2025-11-02T00:00:00Z", None)
    return [
        (b"k", None)
        if random.random() < 0.1
        else event(
            event_id=random.choice("12345678"),
            user_id=random.choice([1, 2, None, -1, "x"]),
            amount=random.choice([1.5, 2]),
            at=random.choice(when),
        )
        for _ in range(random.randrange(1, 9))
    ]


LEAVING = CLICKS.model_copy(update={"expiry": Expiry(column="at", days=30)})
UNNAMED = CLICKS.model_copy(
    update={
        "event_id": None,
        "projection": "SELECT user_id, at FROM source WHERE user_id >= 0",
        "columns": EVENTS.columns[1::2],
    }
)
NUMBERS = columns(event_id="bigint", user_id="bigint", amount="decimal(12,2)", at="timestamp")


@pytest.mark.parametrize(
    ("kind", "entry", "batches"),
    [
        pytest.param("string", CLICKS, 6, marks=pytest.mark.long),
        ("string", LEAVING, 3),
        pytest.param("string", UNNAMED, 6, marks=pytest.mark.long),
        pytest.param("bigint", CLICKS, 6, marks=pytest.mark.long),
    ],
    ids=["by text", "leaving", "unnamed", "by number"],
)
def test_few_events_are_judged_as_spark_judges_them(
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    entry: SilverEntry,
    batches: int,
) -> None:
    """The same rows, the same quarantine, the same counts, over random batches that run twice."""
    random, source = Random(7), EVENTS
    if kind == "bigint":
        source, entry = (one.model_copy(update={"columns": NUMBERS}) for one in (EVENTS, entry))
    here, here_record = started(spark, tmp_path / "here", source, entry)
    there, there_record = started(spark, tmp_path / "there", source, entry)
    apply_both_ways(spark, here, there, [few_events(random) for _ in range(batches)])
    assert here_record == there_record
    told = {name for one in here_record for name, count in counts(one).items() if count}
    assert {"applied", "duplicate", "ignored", "quarantined"} <= told
    engines = {one.get("engineInfo", "").split(":")[0] for one in written(here.tables.table)}
    assert engines == {"delta-rs"}

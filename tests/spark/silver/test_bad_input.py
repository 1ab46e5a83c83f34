"""All classes of bad input in one batch: each record ends as the table says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.silver.apply.dispositions import DISPOSITION
from spark_jobs.silver.apply.outcome import HeldTables
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.reader import read
from tests.spark.silver.bad_input import (
    APPLIED,
    CHANGE_CLASSES,
    EVENT_CLASSES,
    MAX_BYTES,
    QUARANTINED,
    BadInput,
    body,
)
from tests.spark.silver.world import BRONZE, CHANGES, NOW, ORDERS, applier, columns, counts

EVENTS = SourceEntry(
    name="events",
    format=SourceFormat.JSON,
    topic="events",
    event_id="event_id",
    event_time="at",
    watermark_seconds=86_400,
    file="sources/events.yml",
    columns=(
        Column(name="event_id", type="string", required=True),
        *columns(
            user_id="bigint",
            amount="decimal(12,2)",
            exact="decimal(38,10)",
            score="double",
            active="boolean",
            at="timestamp",
            note="string",
        ),
    ),
)
TABLE = SilverEntry(
    name="events",
    source="events",
    sql="",
    projection="SELECT event_id, user_id, amount, exact, score, active, at, note FROM source",
    columns=EVENTS.columns,
    apply=ApplyMode.APPEND,
    event_id="event_id",
    file="sql/silver/events.sql",
    fingerprint="1",
)
ROWS = CHANGES.model_copy(update={"columns": (*CHANGES.columns, *columns(placed_at="timestamp"))})


@pytest.mark.parametrize(
    ("source", "entry", "classes"),
    [(EVENTS, TABLE, EVENT_CLASSES), (ROWS, ORDERS, CHANGE_CLASSES)],
    ids=["events", "changes"],
)
def test_every_class_ends_as_the_table_says(
    spark: SparkSession,
    tmp_path: Path,
    source: SourceEntry,
    entry: SilverEntry,
    classes: tuple[BadInput, ...],
) -> None:
    every = [(one, record) for one in classes for record in one.records]
    rows = [
        (*record, list(one.headers), "t", 0, offset, kafka_time(one), NOW)
        for offset, (one, record) in enumerate(every)
    ]
    writing = replace(applier(Lake(str(tmp_path)), source, entry), max_bytes=MAX_BYTES)
    writing.tables.create(spark, source)
    outcome = writing.judged(spark.createDataFrame(rows, BRONZE))
    batch = writing.write(outcome, 0)
    told = {
        row[0]: tuple(str(part) for part in row[1:] if part is not None)
        for row in outcome.rows.select(
            "__offset", DISPOSITION, "__problem.reason", "__problem.detail"
        ).collect()
    }
    found = [told[offset] for offset in range(len(every))]
    expected = [end for one in classes for end in one.ends]
    shown = [(one.number, one.what) for one, _ in every]
    assert list(zip(shown, found, strict=True)) == list(zip(shown, expected, strict=True))
    assert batch is not None
    assert batch.records == len(every)
    kept = {
        row["offset"]: (row["key"], row["value"])
        for row in read(spark, writing.tables.quarantine).collect()
    }
    assert kept == {
        offset: tuple(bytes(part) if part is not None else None for part in record)
        for offset, (_, record) in enumerate(every)
        if found[offset][0] == QUARANTINED
    }
    names = {name for one in classes for name in one.row}
    written = read(spark, writing.tables.table).select("__offset", *names)
    values = {row["__offset"]: row.asDict() for row in written.collect()}
    for offset, (one, record) in enumerate(every):
        if record is one.records[-1] and one.ends[-1] == (APPLIED,):
            row = values.get(offset, {})
            assert {name: row.get(name) for name in one.row} == one.row, one.what


def test_a_duplicate_is_known_however_late(spark: SparkSession, tmp_path: Path) -> None:
    """Beyond the horizon the table itself tells, also after a restart; what is new is applied."""
    at = NOW.isoformat()
    first = applier(Lake(str(tmp_path)), EVENTS, TABLE)
    first.tables.create(spark, EVENTS)
    arrivals = [
        (0, NOW, [body("a", user_id=1, at=at), body("a", user_id=1, at=at)]),
        (
            2,
            NOW + 30 * timedelta(seconds=EVENTS.watermark_seconds or 0),
            [
                body("a", user_id=1, at=at),
                body("a", user_id=2, at=at),
                body("late", user_id=3, at=at),
            ],
        ),
    ]
    ends = [{"applied": 1, "duplicate": 1}, {"applied": 1, "duplicate": 2}]
    for number, (offset, arrived_at, records) in enumerate(arrivals):
        rows = [
            (*record, [], "t", 0, offset + place, arrived_at, arrived_at)
            for place, record in enumerate(records)
        ]
        again = replace(first, held=HeldTables(), ended=set())
        frame = spark.createDataFrame(rows, BRONZE)
        assert counts(again.apply(frame, number)) == ends[number]
    held = read(spark, first.tables.table).select("event_id", "user_id", "__offset").collect()
    assert sorted(map(tuple, held)) == [("a", 1, 0), ("late", 3, 4)]


def kafka_time(one: BadInput) -> datetime:
    return NOW if one.timestamp is None else datetime.fromtimestamp(one.timestamp / 1000, UTC)

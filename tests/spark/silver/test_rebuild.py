"""A silver table rebuilt from bronze equals the live table, or the one before it was spoiled."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.bronze.table import COLUMNS as BRONZE_TABLE
from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.settings import Settings
from spark_jobs.silver.check.reconcile import reconcile_silver
from spark_jobs.silver.errors import BronzeIncompleteError, OvertakenError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.silver.repair import rebuild as rebuild_module
from spark_jobs.silver.repair import shadow as shadow_module
from spark_jobs.silver.repair.comparison import Rebuilt
from spark_jobs.silver.repair.reprocessing import Reprocessor
from spark_jobs.silver.repair.requests import ReprocessRequest
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.delta import CAME, CHANGE_TYPE
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import commit, existing_table
from spark_jobs.storage.reader import read
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.tables import append, changes
from tests.properties.test_silver_laws import CURRENT, HISTORY, SOURCE, World
from tests.spark.silver.world import CLICKS, EVENTS, bronze, event

REASON = {"by": "me@here", "reason": "rows were changed by hand"}
SEED = 3
# Of each law: enough for each kind of damage below to meet rows of each kind.
HISTORIES = 40


class CrashError(Exception):
    """Simulates a kill."""


class Live:
    """A silver table that a stream keeps, and the bronze table before it."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        store: ControlStore,
        declared: tuple[SourceEntry, SilverEntry],
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.spark, self.store = spark, store
        self.source, self.entry = declared
        self.flow = SilverFlow(self.source, self.entry, settings, store, now=now)
        self.lake = Lake(settings.lake)
        self.bronze = self.lake.location(self.source.table_name)
        self.tables = self.flow.tables
        create_stream_table(spark, self.bronze, BRONZE_TABLE)
        self.flow.create_tables(spark)
        self._landed = 0

    def land(self, records: DataFrame) -> None:
        """Records in several partitions; each landing has its own time of arrival.

        All changes of a key are in one partition, behind its snapshots.
        """
        self._landed += 1
        arrived = sf.expr(f"arrived_at + INTERVAL {self._landed} MINUTES")
        frame = records.withColumn("arrived_at", arrived)
        if self.entry.apply is ApplyMode.APPEND:
            frame = frame.withColumn("partition", sf.expr("CAST(offset % 2 AS INT)"))
        append(frame.withColumn("arrival_date", sf.to_date("arrived_at")), self.bronze)

    @contextmanager
    def following(self) -> Iterator[StreamingQuery]:
        query = self.flow.start(self.spark)
        try:
            yield query
        finally:
            query.stop()

    def run(self) -> Rebuilt:
        return self.flow.rebuilder(self.spark).run(**REASON)

    def preview(self) -> Rebuilt:
        return self.flow.rebuilder(self.spark).preview()

    def content(self) -> list[Counter[str]]:
        """The rows of every part; the quarantine without when its rows were written."""
        frames = [read(self.spark, place) for place in self.tables.places]
        frames[1] = frames[1].drop("quarantined_at", "headers")
        return [Counter(str(tuple(row)) for row in frame.collect()) for frame in frames]

    def versions(self) -> list[int]:
        return [existing_table(place).version() for place in self.tables.places]

    def sql(self, statement: str, place: str) -> None:
        self.spark.sql(statement.replace("THE_TABLE", f"delta.`{place}`"))

    def assert_balanced(self) -> None:
        found = reconcile_silver(self.lake, self.tables, store=self.store, source=self.bronze)
        assert (found.problems, found.pending) == ((), 0)


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def clicks(spark: SparkSession) -> list[DataFrame]:
    """Events, many of them more than once and with other bodies, and some that are rejected."""
    rng, found, first = random.Random(SEED), [], 0
    for _ in range(3):
        records = [
            event(event_id=f"e{rng.randrange(60)}", user_id=rng.choice((1, 2, -1, None, "x")))
            for _ in range(50)
        ]
        found.append(bronze(spark, records, first=first))
        first += len(records)
    return found


def batches(spark: SparkSession, entry: SilverEntry) -> list[DataFrame]:
    if entry.apply is ApplyMode.APPEND:
        return clicks(spark)
    return World(SEED, plain=False, histories=HISTORIES).frames(spark)


# What somebody does to a table's rows, and to what the table remembers beside them.
SPOILED = {
    ApplyMode.APPEND: (
        "UPDATE THE_TABLE SET user_id = 77 WHERE event_id IN ('e1', 'e2', 'e3', 'e4', 'e5', 'e6')",
        "DELETE FROM THE_TABLE WHERE event_id > 'e5'",
        "INSERT INTO THE_TABLE SELECT * FROM THE_TABLE WHERE event_id < 'e2'",
        "INSERT INTO THE_TABLE SELECT 'new', 1, NULL, NULL, 0, 1000000, now()",
    ),
    ApplyMode.UPSERT: (
        "UPDATE THE_TABLE SET status = 'spoiled' WHERE id % 5 = 0",
        "DELETE FROM THE_TABLE WHERE id % 5 = 1",
        "INSERT INTO THE_TABLE SELECT * FROM THE_TABLE WHERE id % 5 = 2",
        "INSERT INTO THE_TABLE SELECT id + 100000, * EXCEPT (id) FROM THE_TABLE WHERE id < 30",
    ),
    ApplyMode.HISTORY: (
        "UPDATE THE_TABLE SET valid_to = NULL WHERE id % 5 = 0",
        "DELETE FROM THE_TABLE WHERE id % 5 = 1",
        "INSERT INTO THE_TABLE SELECT * FROM THE_TABLE WHERE id % 5 = 2",
    ),
}
REMEMBERED = (
    "DELETE FROM THE_TABLE WHERE id IS NULL OR id % 3 = 0",
    "UPDATE THE_TABLE SET __sequence = concat('9', __sequence) WHERE id % 3 = 1",
)
KINDS = {
    "events": (EVENTS, CLICKS),
    "current rows": (SOURCE, CURRENT),
    "history": (SOURCE, HISTORY),
}


# Rejected events, and a rebuild that is cut off, are in the test below as well.
@pytest.mark.parametrize(
    "declared",
    [
        pytest.param(one, id=name, marks=[] if name == "current rows" else [pytest.mark.long])
        for name, one in KINDS.items()
    ],
)
def test_a_spoiled_table_is_as_it_was(
    spark: SparkSession,
    settings: Settings,
    store: ControlStore,
    monkeypatch: pytest.MonkeyPatch,
    declared: tuple[SourceEntry, SilverEntry],
) -> None:
    live = Live(spark, settings, store, declared)
    *early, late = batches(spark, live.entry)
    monkeypatch.setattr(shadow_module, "PIECE_RECORDS", 200)
    with live.following() as query:
        for batch in early:
            live.land(batch)
            query.processAllAvailable()
        before, versions = live.content(), live.versions()
        found = live.run()
        assert (found.right, found.version, live.versions()) == (True, None, versions)

        for statement in SPOILED[live.entry.apply]:
            live.sql(statement, live.tables.table)
        if live.entry.apply is not ApplyMode.APPEND:
            for statement in REMEMBERED:
                live.sql(statement, live.tables.places[-1])
        versions = live.versions()
        if live.entry.apply is ApplyMode.APPEND:
            shown = live.preview()
            assert live.versions() == versions
        else:
            cut_off(live, monkeypatch, "rebuild.after_remembered")
        found = live.run()
        assert found.leave
        assert found.enter
        if live.entry.apply is ApplyMode.APPEND:
            assert replace(shown, version=found.version) == found
        else:
            # They were put right before the rebuild was cut off.
            assert live.versions()[2] == versions[2] + 1
            assert not found.remembered
        assert found.version == versions[0] + 1 == live.versions()[0]
        assert_net(live, found, versions[0])
        assert_same(live, before)
        live.assert_balanced()

        # The stream goes on with what is remembered now.
        live.land(late)
        query.processAllAvailable()
    live.assert_balanced()
    if live.entry.apply is not ApplyMode.APPEND:
        laws = World(SEED, plain=False, histories=HISTORIES)
        expected = {row for law in laws.histories for row in laws.expected(law, live.entry)}
        assert rows_told(live) == expected


def cut_off(live: Live, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Begin a rebuild that ends somewhere."""

    def crash(name: str) -> None:
        if name == point:
            raise CrashError(name)

    with monkeypatch.context() as patch:
        patch.setattr(rebuild_module, "failpoint", crash)
        with pytest.raises(CrashError):
            live.run()


def assert_net(live: Live, found: Rebuilt, version: int) -> None:
    """The change feed has the rows that differ, and the commit says who wrote it."""
    feed = changes(live.spark, live.tables.table, after=version, upto=version + 1)
    kinds = Counter(row[0] in CAME for row in feed.select(CHANGE_TYPE).collect())
    assert kinds == Counter({True: found.enter, False: found.leave})
    written = commit(live.tables.table, version + 1)
    assert written is not None
    assert written.metadata is not None
    assert written.metadata["rebuild"] == {**REASON, "bronze_version": found.bronze_version}


def assert_same(live: Live, before: list[Counter[str]]) -> None:
    """Rows and quarantine as they were; of deletions only the newest of each key must be there."""
    after = live.content()
    if live.entry.apply is ApplyMode.UPSERT:
        before, after = before[:2], after[:2]
    assert after == before


def rows_told(live: Live) -> set[tuple[Any, ...]]:
    texts = [
        f"unix_seconds({column.name})" if column.type == "timestamp" else column.name
        for column in live.entry.columns
    ]
    return {tuple(row) for row in read(live.spark, live.tables.table).selectExpr(*texts).collect()}


@pytest.fixture
def rejecting(
    spark: SparkSession, settings: Settings, store: ControlStore
) -> Iterator[tuple[Live, Reprocessor]]:
    """A table that a stream follows, with rejected records of which one was taken up by hand."""
    live = Live(spark, settings, store, (EVENTS, CLICKS))
    records = [
        event(event_id="a", user_id="x"),
        event(event_id="b", user_id=1),
        event(event_id="a", user_id=2),
        event(event_id="c", user_id="y"),
        event(event_id="d", user_id="z"),
    ]
    live.land(bronze(spark, records))
    with live.following() as query:
        query.processAllAvailable()
        reprocessor = live.flow.reprocessor(spark)
        value = b'{"event_id": "c", "user_id": 3}'
        reprocessor.run(ReprocessRequest(by="me@here", values={(1, 3): value}))
        yield live, reprocessor


def take_up_rejected(live: Live) -> None:
    """Somebody writes a row of a rejected record, which is then no longer in quarantine."""
    live.sql("DELETE FROM THE_TABLE WHERE offset = 4", live.tables.quarantine)
    live.sql("INSERT INTO THE_TABLE SELECT 'd', 5, NULL, NULL, 0, 4, now()", live.tables.table)


def test_people_and_retention_come_first(
    rejecting: tuple[Live, Reprocessor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was decided about rejected records holds, and nothing is made of a part of bronze."""
    live, reprocessor = rejecting
    # It came first, and is a duplicate of the one that was taken up meanwhile.
    fixed = b'{"event_id": "a", "user_id": 9}'
    request = ReprocessRequest(by="me@here", values={(0, 0): fixed})
    assert reprocessor.run(request)[0].disposition == "duplicate"
    assert live.preview().right
    before = live.content()
    # Of a record that is rejected now, the row leaves, and it counts as rejected.
    take_up_rejected(live)
    found = live.run()
    assert (found.leave, found.enter, found.rejected) == (1, 0, 1)
    assert live.content() == before
    live.assert_balanced()

    def reprocess(name: str) -> None:
        if name == "rebuild.built":
            reprocessor.run(ReprocessRequest(by="me@here", discard=True, words="noise"))

    with monkeypatch.context() as patch:
        patch.setattr(rebuild_module, "failpoint", reprocess)
        with pytest.raises(OvertakenError):
            live.run()
    live.sql("DELETE FROM THE_TABLE WHERE offset < 2", live.bronze)
    with pytest.raises(BronzeIncompleteError) as caught:
        live.run()
    assert caught.value.missing == ("partition 1: 1 to 1",)


# A rebuild that is cut off before these is in the test of spoiled tables.
@pytest.mark.long
@pytest.mark.parametrize("point", ["rebuild.after_quarantine", "rebuild.after_table"])
def test_a_rebuild_of_rejected_records_that_is_cut_off_ends_the_same(
    rejecting: tuple[Live, Reprocessor], monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    live, _ = rejecting
    before = live.content()
    take_up_rejected(live)
    cut_off(live, monkeypatch, point)
    live.run()
    assert live.content() == before
    live.assert_balanced()

"""Records out of quarantine: each once, in its place in the order, and counted where it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.bronze.table import COLUMNS as BRONZE_TABLE
from spark_jobs.cli.reprocess import fixed_values
from spark_jobs.graph.manifest import ApplyMode, Manifest, SilverEntry, SourceEntry
from spark_jobs.planning.errors import DeletionTooLargeError
from spark_jobs.settings import Settings
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.apply.outcome import HeldTables
from spark_jobs.silver.check.reconcile import SilverFacts, balance, reconcile_silver
from spark_jobs.silver.errors import NotInQuarantineError, TypesDifferError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.silver.repair import reprocessing as reprocessing_module
from spark_jobs.silver.repair.reprocessing import Reprocessor, reprocessor
from spark_jobs.silver.repair.requests import Reprocessed, ReprocessRequest
from spark_jobs.silver.store.releases import Place, releases
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import COUNTS, SilverBatch, SilverTotals
from spark_jobs.state.failpoints import EXIT_CODE, VARIABLE
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.reader import read, read_columns
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.tables import append
from tests.compiling import put_compiled
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
    event,
)

EVENT_RECORDS: list[Record] = [
    event(event_id="a", user_id=1),
    event(event_id="b", user_id="x"),
    (b"key", b"\xff" * 30),
    event(event_id="c", amount="1.005"),
    event(event_id="a", user_id="y"),
    event(event_id="d", user_id="z"),
]


class CrashError(Exception):
    """Simulates a kill."""


class World:
    """One silver table, its batches, and whether its numbers add up."""

    def __init__(self, spark: SparkSession, root: Path, source: SourceEntry, entry: SilverEntry):
        self.spark = spark
        self.batches: list[SilverBatch] = []
        self.applier: BatchApplier = applier(
            Lake(str(root)), source, entry, record=self.batches, epoch=1
        )
        self.applier.tables.create(spark, source)
        self.bronze: Counter[Place] = Counter()

    def take(self, records: list[Record], number: int, *, first: int = 0) -> None:
        frame, apply = self.applier.streamed(bronze(self.spark, records, first=first))
        apply(frame, number)
        self.bronze |= Counter((0, first + at) for at in range(len(records)))

    def again(self, *, epoch: int = 1) -> None:
        """The application after a start; in a new epoch its counts start over."""
        self.applier = replace(self.applier, epoch=epoch, held=HeldTables(), ended=set())

    @property
    def reprocessor(self) -> Reprocessor:
        return reprocessor(self.applier, self.spark, nullcontext)

    def reprocess(self, **asked: Any) -> dict[Place, str]:
        return told(self.reprocessor.run(ReprocessRequest(by="me@here", **asked)))

    def preview(self, **asked: Any) -> dict[Place, str]:
        return told(self.reprocessor.preview(ReprocessRequest(by="me@here", **asked)))

    def held(self) -> set[Place]:
        return set(self.places(self.applier.tables.quarantine, "partition", "offset"))

    def places(self, location: str, *names: str) -> Counter[Place]:
        rows = read_columns(location, names).to_pylist()
        return Counter((row[names[0]], row[names[1]]) for row in rows)

    def totals(self) -> dict[str, int]:
        """The balance's counts; its equations must hold."""
        tables, epoch = self.applier.tables, self.applier.epoch
        last = {one.batch_id: one for one in self.batches if one.epoch == epoch}
        sums = {name: sum(getattr(one, name) for one in last.values()) for name in COUNTS}
        facts = SilverFacts(
            apply=self.applier.entry.apply,
            totals=SilverTotals(silver="x", **sums),
            covered_rows=self.bronze.total(),
            bronze=self.bronze,
            silver=self.places(tables.table, "__partition", "__offset"),
            quarantine=self.places(tables.quarantine, "partition", "offset"),
            changes=self.places(tables.changes, "__partition", "__offset")
            if self.applier.entry.apply is ApplyMode.HISTORY
            else None,
            released=tuple(releases(tables.releases)),
            epoch=epoch,
        )
        found = balance(facts)
        assert (found.problems, found.pending) == ((), 0)
        return {name: getattr(found.totals, name) for name in COUNTS[1:]}

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        return sorted(
            tuple(row)
            for row in read(self.spark, self.applier.tables.table).select(*names).collect()
        )


def told(found: list[Reprocessed]) -> dict[Place, str]:
    return {
        (one.partition, one.offset): " ".join(filter(None, (one.disposition, one.reason)))
        for one in found
    }


def test_many_records_are_discarded_only_where_that_is_meant(
    spark: SparkSession, tmp_path: Path
) -> None:
    world = World(spark, tmp_path, EVENTS, CLICKS)
    world.take([(None, b"{") for _ in range(101)], 0)
    asked = {"reason": "MALFORMED_JSON", "discard": True, "words": "noise"}
    with pytest.raises(DeletionTooLargeError) as caught:
        world.reprocess(**asked)
    assert (caught.value.rows, caught.value.among) == (101, 101)
    assert len(world.held()) == 101
    assert set(world.reprocess(**asked, let_pass=True).values()) == {"ignored"}
    assert world.held() == set()


def test_events(spark: SparkSession, tmp_path: Path) -> None:
    world = World(spark, tmp_path, EVENTS, CLICKS)
    world.take(EVENT_RECORDS, 0)
    assert world.held() == {(0, at) for at in range(1, 6)}
    values = {
        (0, 1): b'{"event_id": "b", "user_id": 2}',
        (0, 3): b'{"event_id": "c", "amount": "x"}',
        (0, 4): b'{"event_id": "a", "user_id": 9}',
    }
    outcomes = {
        (0, 1): "applied",
        (0, 3): "quarantined TYPE_MISMATCH",
        (0, 4): "duplicate",
    }
    before = world.totals()
    assert world.preview(values=values) == outcomes
    assert world.totals() == before
    assert world.reprocess(values=values, words="they sent texts") == outcomes
    assert world.reprocess(places=frozenset({(0, 2)}), discard=True, words="noise") == {
        (0, 2): "ignored"
    }
    ends = {"applied": 2, "superseded": 0, "quarantined": 2, "duplicate": 1, "ignored": 1}
    assert world.totals() == ends
    # The second time there is nothing to do, and what was never there is an error.
    assert world.reprocess(values={(0, 1): b'{"event_id": "z"}'}) == {}
    with pytest.raises(NotInQuarantineError) as caught:
        world.reprocess(places=frozenset({(0, 0), (0, 3)}))
    assert caught.value.places == ((0, 0),)
    assert world.rows("event_id", "user_id", "__offset") == [("a", 1, 0), ("b", 2, 1)]
    [tried] = [
        one for one in read(spark, world.applier.tables.quarantine).collect() if one["offset"] == 3
    ]
    assert (tried["attempts"], tried["value"]) == (2, EVENT_RECORDS[3][1])
    kept = read(spark, world.applier.tables.releases).where("offset = 1").collect()[0]
    assert (kept["released_by"], kept["reason_text"]) == ("me@here", "they sent texts")
    # The batch runs again; then the declaration is fixed, and later all of bronze is read again.
    world.again()
    world.take(EVENT_RECORDS, 0)
    assert world.totals() == ends
    finer = columns(event_id="string", user_id="bigint", amount="decimal(12,3)", at="timestamp")
    source = EVENTS.model_copy(update={"columns": finer})
    world.applier = replace(world.applier, source=source)
    with pytest.raises(TypesDifferError) as refused:
        world.preview()
    types = ("amount", "decimal(12,2)", "decimal(12,3)")
    assert (refused.value.column, refused.value.held, refused.value.declared) == types
    select = CLICKS.projection.replace(
        "amount", "CAST(ROUND(amount, 2) AS DECIMAL(12,2)) AS amount"
    )
    entry = CLICKS.model_copy(update={"projection": select})
    world.applier = replace(world.applier, entry=entry)
    assert world.reprocess(reason="TYPE_MISMATCH") == {
        (0, 3): "applied",
        (0, 5): "quarantined TYPE_MISMATCH",
    }
    ends |= {"applied": 3, "quarantined": 1}
    assert world.totals() == ends
    world.again(epoch=2)
    world.take(EVENT_RECORDS[:3], 0)
    world.take(EVENT_RECORDS[3:], 1, first=3)
    assert world.totals() == ends
    names = ("event_id", "user_id", "amount", "__offset")
    table = [("a", 1, None, 0), ("b", 2, None, 1), ("c", None, Decimal("1.01"), 3)]
    assert sorted(world.rows(*names), key=lambda row: row[-1]) == table


# Nothing but the output column itself reads the large value.
PLAIN = ORDERS.model_copy(update={"projection": ORDERS.projection.partition(" WHERE")[0]})
KEPT = "__debezium_unavailable_value"
LACKING: list[Record] = [
    # Of keys 1 and 2, a change that is rejected and one that needs its large value; of key 3 a
    # rejected one before its deletion.
    change("c", 1, 110, commit=100, status="long text", amount="x"),
    change("u", 1, 120, commit=110, status=KEPT, amount="2.00"),
    change("c", 2, 115, commit=105, status="another", amount="x"),
    change("u", 2, 125, commit=115, status=KEPT, amount="3.00"),
    change("u", 2, 130, commit=125, status="whole", amount="4.00"),
    change("c", 3, 126, commit=125, status="short", amount="x"),
    change("d", 3, 131, commit=130),
    (None, b'{"op": "t", "source": {}}'),
]
WHOLE = {
    at: change("c", key, position, commit=position - 10, status=status, amount="1.00")[1]
    for at, key, position, status in [
        (0, 1, 110, "long text"),
        (2, 2, 115, "another"),
        (5, 3, 126, "short"),
    ]
}
TRUNCATION = change("t", 0, 140, commit=130)[1]


@pytest.mark.parametrize(
    ("entry", "killed"),
    [
        (PLAIN, ("reprocess.before_releases", "reprocess.after_releases")),
        pytest.param(HISTORY, ("reprocess.after_apply",), marks=pytest.mark.long),
    ],
    ids=["current rows", "SCD type 2"],
)
def test_changes(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry: SilverEntry,
    killed: tuple[str, ...],
) -> None:
    """Fixed changes are placed, filled and truncate; reprocessing that was cut off is finished."""
    world = World(spark, tmp_path, CHANGES, entry)
    history = entry is HISTORY
    times = ("unix_seconds(valid_from)", "unix_seconds(valid_to)") if history else ()

    def rows() -> list[tuple[Any, ...]]:
        amount = "amount" if history else "twice / 2"
        names = ("order_id", "status", f"CAST({amount} AS int)", *times)
        frame = read(spark, world.applier.tables.table).selectExpr(*names)
        return sorted(tuple(row) for row in frame.collect())

    world.take(LACKING, 0)
    assert world.held() == {(0, at) for at in (0, 1, 2, 3, 5, 7)}
    ends = world.totals()
    # The tables as they are now would make something else of the change at 3.
    world.again(epoch=2)
    world.take(LACKING, 0)
    assert world.totals() == ends
    values = {(0, at): WHOLE.get(at, LACKING[at][1]) or b"" for at in (0, 1, 2, 3, 5)}

    def cut_off(point: str, values: dict[Place, bytes]) -> None:
        def crash(name: str) -> None:
            if name == point:
                raise CrashError(name)

        with monkeypatch.context() as patch:
            patch.setattr(reprocessing_module, "failpoint", crash)
            with pytest.raises(CrashError, match=point):
                world.reprocess(values=values)

    for point in killed:
        cut_off(point, values)
    overtaken = "applied" if history else "superseded"
    outcomes = dict.fromkeys([(0, 0), (0, 2), (0, 3), (0, 5)], overtaken)
    # What was decided is finished, also where other records are asked for.
    assert world.reprocess(places=frozenset({(0, 0)})) == {(0, 1): "applied", **outcomes}
    assert world.totals()["quarantined"] == 1
    told = [
        (1, "long text", 1, 110, 120),
        (1, "long text", 2, 120, None),
        (2, "another", 1, 115, 125),
        (2, "another", 3, 125, 130),
        (2, "whole", 4, 130, None),
        (3, "short", 1, 126, 131),
    ]
    current = [row[:3] for row in told if row[-1] is None]
    assert rows() == (told if history else current)
    # The stream, which knows of no truncation, must see the one that another process applied.
    if history:
        cut_off("reprocess.after_quarantine", {(0, 7): TRUNCATION})
    else:
        assert world.reprocess(values={(0, 7): TRUNCATION}) == {(0, 7): "applied"}
    assert world.held() == set()
    later = [
        change("u", 4, 139, commit=129, amount="9.00"),
        change("c", 5, 150, commit=140, status="new", amount="5.00"),
    ]
    world.take(later, 1, first=len(LACKING))
    ended = [(*row[:4], row[4] or 140) for row in told]
    told = [*ended, (4, "placed", 9, 139, 140), (5, "new", 5, 150, None)]
    assert rows() == (told if history else [(5, "new", 5)])
    assert world.totals()["quarantined"] == 0


@pytest.mark.long
def test_beside_a_running_stream(spark: SparkSession, settings: Settings, tmp_path: Path) -> None:
    """The command in a process of its own, killed once, while the stream goes on."""
    manifest = Manifest(project="p", sources={"clicks": EVENTS}, silver={"clicks": CLICKS})
    put_compiled(settings, manifest)
    lake = Lake(settings.lake)
    place = lake.location(EVENTS.table_name)
    create_stream_table(spark, place, BRONZE_TABLE)

    def land(records: list[Record], first: int) -> None:
        frame = bronze(spark, records, first=first)
        append(frame.selectExpr("*", "CAST(arrived_at AS DATE) AS arrival_date"), place)

    def reprocess(*arguments: str, **environment: str) -> int:
        program = [str(Path(sys.executable).parent / "tidemark")]
        project = ["--project", str(settings.project_dir)]
        return subprocess.run(
            [*program, *project, "quarantine", "reprocess", "clicks", *arguments],
            env={**os.environ, "TIDEMARK_STATE_DIR": str(settings.state), **environment},
            check=False,
            timeout=120,
        ).returncode

    file = tmp_path / "fixed.jsonl"
    lines = [(1, {"event_id": "b", "user_id": 2}), (5, {"event_id": "late", "user_id": 3})]
    file.write_text(
        "\n".join(json.dumps({"partition": 0, "offset": at, "value": one}) for at, one in lines)
    )
    with ControlStore.open(settings.control_url) as store:
        flow = SilverFlow(EVENTS, CLICKS, settings, store)
        flow.create_tables(spark)
        land(EVENT_RECORDS, 0)
        query = flow.start(spark)
        try:
            query.processAllAvailable()
            asked = ("--with", str(file), "--reason-text", "texts")
            assert reprocess(*asked, **{VARIABLE: "silver.after_apply"}) == EXIT_CODE
            # The stream applies what the reprocessing had applied, and must see that.
            land([event(event_id="late", user_id=3)], len(EVENT_RECORDS))
            query.processAllAvailable()
            values = fixed_values(file)
            taking = flow.reprocessor(spark)
            assert told(taking.run(ReprocessRequest(by="me@here", values=values))) == {
                (0, 1): "applied",
                (0, 5): "applied",
            }
            land([event(event_id="b", user_id=2)], len(EVENT_RECORDS) + 1)
            query.processAllAvailable()
        finally:
            query.stop()
        tables = SilverTables.of(lake, CLICKS)
        found = reconcile_silver(lake, tables, store=store, source=place)
    assert (found.problems, found.pending) == ((), 0)
    assert (found.totals.applied, found.totals.duplicate, found.totals.quarantined) == (3, 2, 3)
    ids = sorted(read_columns(tables.table, ["event_id"]).column(0).to_pylist())
    assert ids == ["a", "b", "late"]

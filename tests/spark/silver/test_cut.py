"""A batch is cut at a commit position: the version between shows it, and the end is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import SilverEntry
from spark_jobs.silver.apply import batch as batch_module
from spark_jobs.silver.apply import current_rows
from spark_jobs.silver.apply import scd2_rows as history_rows
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.apply.outcome import HeldTables
from spark_jobs.silver.frontier import TableFrontier, Target, reached_by
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.frontiers import AfterSnapshot
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.reader import read
from tests.spark.silver.world import CHANGES, HISTORY, ORDERS, Record, applier, bronze, change

# Two transactions a batch; the position of a change is the end of the transaction before it.
BATCHES: list[list[Record]] = [
    [change("r", key, 100) for key in (1, 2, 3, 4)],
    [
        change("u", 1, 210, commit=200, amount="2.00"),
        change("d", 2, 215, commit=200),
        change("c", 5, 220, commit=200),
        change("u", 1, 310, commit=300, amount="3.00"),
        change("u", 5, 320, commit=300, amount="4.00"),
        change("c", 2, 330, commit=300, amount="5.00"),
        (b"{}", b"{"),
    ],
    [change("d", 3, 410, commit=400), change("u", 4, 510, commit=500, status="paid")],
]
# The first is reached in the part before the cut.
POINTS = [
    (ORDERS, "silver.after_tombstones"),
    (ORDERS, "silver.between_parts"),
    pytest.param(ORDERS, "silver.after_apply", marks=pytest.mark.long),
    pytest.param(HISTORY, "silver.between_parts", marks=pytest.mark.long),
]


class CrashError(Exception):
    """Simulates a kill."""


def started(
    spark: SparkSession, place: Path, entry: SilverEntry
) -> tuple[BatchApplier, TableFrontier, list[SilverBatch]]:
    record: list[SilverBatch] = []
    found = applier(Lake(str(place)), CHANGES, entry, record=record)
    found.tables.create(spark, CHANGES)
    frontier = TableFrontier()
    return replace(found, frontier=frontier), frontier, record


def content(spark: SparkSession, applier: BatchApplier, version: int | None = None) -> list[object]:
    names = [column.name for column in applier.tables.entry.columns]
    rows = read(spark, applier.tables.table, version).select(*names).collect()
    return sorted((tuple(row) for row in rows), key=repr)


def apply_all(spark: SparkSession, applier: BatchApplier, batches: Sequence[list[Record]]) -> None:
    first = 0
    for number, records in enumerate(batches):
        applier.apply(bronze(spark, records, first=first), number)
        first += len(records)


@pytest.mark.parametrize(
    "entry", [ORDERS, pytest.param(HISTORY, marks=pytest.mark.long)], ids=["current", "history"]
)
def test_the_version_at_a_cut_has_what_was_committed_before(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    cut, frontier, record = started(spark, tmp_path / "cut", entry)
    before, _, _ = started(spark, tmp_path / "before", entry)
    apply_all(spark, before, [BATCHES[0], BATCHES[1][:3]])

    cut.apply(bronze(spark, BATCHES[0]), 0)
    frontier.aim((Target(300, 1),))
    cut.apply(bronze(spark, BATCHES[1], first=4), 1)
    [made] = frontier.cuts
    assert (made.position, made.batch_id) == (300, 1)
    assert content(spark, cut, made.version.version) == content(spark, before)
    # Counted as one batch.
    assert (record[1].records, record[1].quarantined) == (7, 1)

    # A target between two batches is shown by the version before the next one.
    frontier.aim((Target(400, 1),))
    shown = content(spark, cut)
    cut.apply(bronze(spark, BATCHES[2], first=11), 2)
    assert frontier.cuts[-1].position == 400
    assert content(spark, cut, frontier.cuts[-1].version.version) == shown
    assert frontier.reached == reached_by(cut.tables) == 500


def test_of_several_targets_a_batch_is_cut_at_the_heaviest(
    spark: SparkSession, tmp_path: Path
) -> None:
    cut, frontier, _ = started(spark, tmp_path / "cut", ORDERS)
    before, _, _ = started(spark, tmp_path / "before", ORDERS)
    apply_all(spark, before, [BATCHES[0], BATCHES[1][:3]])
    cut.apply(bronze(spark, BATCHES[0]), 0)
    old = content(spark, cut)
    # Nothing was committed between the first two.
    frontier.aim((Target(150, 1), Target(200, 2), Target(250, 1), Target(300, 4), Target(900, 8)))
    cut.apply(bronze(spark, BATCHES[1], first=4), 1)
    assert [made.position for made in frontier.cuts] == [150, 200, 300]
    shown = [content(spark, cut, made.version.version) for made in frontier.cuts]
    assert shown == [old, old, content(spark, before)]


@pytest.mark.parametrize("together", [False, True], ids=["later", "one batch"])
def test_the_first_transaction_after_a_snapshot_is_in_one_part(
    spark: SparkSession, tmp_path: Path, *, together: bool
) -> None:
    cut, frontier, _ = started(spark, tmp_path, ORDERS)
    # The position of the snapshot, at which nothing after it is shown, and that of the transaction.
    targets = Target(101, 1), Target(200, 2)
    opened = [change("u", key, at, first=True) for key, at in ((1, 90), (2, 140), (3, 160))]
    later = [*opened, change("d", 4, 210, commit=200)]

    def shown(position: int) -> set[tuple[int, bool]]:
        [version] = [one.version.version for one in frontier.cuts if one.position == position]
        rows = read(spark, cut.tables.table, version).collect()
        return {(row["order_id"], row["__offset"] >= 4) for row in rows}

    if together:
        frontier.aim(targets[:1])
        cut.apply(bronze(spark, [*BATCHES[0], *later]), 0)
    else:
        cut.apply(bronze(spark, BATCHES[0]), 0)
        frontier.aim(targets)
        cut.apply(bronze(spark, later, first=4), 1)
        assert shown(200) == {(1, True), (2, True), (3, True), (4, False)}
    assert shown(101) == {(key, False) for key in (1, 2, 3, 4)}


@pytest.mark.parametrize(
    "entry", [ORDERS, pytest.param(HISTORY, marks=pytest.mark.long)], ids=["current", "history"]
)
@pytest.mark.parametrize("aimed", [True, False], ids=["cut", "before the target"])
def test_the_first_transaction_is_not_shown_where_the_snapshot_has_no_row(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry, *, aimed: bool
) -> None:
    """Its changes sort by their own positions there, which are lower than the snapshot's."""
    cut, frontier, _ = started(spark, tmp_path, entry)
    target = Target(AfterSnapshot(101), 1)
    if aimed:
        frontier.aim((target,))
    opened = [change("c", key, at, first=True) for key, at in ((1, 90), (2, 140))]
    cut.apply(bronze(spark, opened[:1]), 0)
    if aimed:
        [made] = frontier.cuts
        assert made.position == 101
        assert content(spark, cut, made.version.version) == []
    assert {row["order_id"] for row in read(spark, cut.tables.table).collect()} == {1}
    # By the position of its row alone, what the table shows would be taken for the snapshot.
    frontier.aim((target,))
    assert reached_by(cut.tables) == 90
    frontier.reached = frontier.reached or 90
    assert frontier.passed(AfterSnapshot(101))
    cut.apply(bronze(spark, opened[1:], first=1), 1)
    assert reached_by(cut.tables) == 140
    frontier.aim((Target(200, 1),))
    assert not frontier.passed(200)


@pytest.mark.parametrize("entry", [ORDERS, HISTORY], ids=["current", "history"])
def test_a_restart_within_the_first_transaction_does_not_show_a_part_of_it(
    spark: SparkSession, tmp_path: Path, entry: SilverEntry
) -> None:
    cut, frontier, _ = started(spark, tmp_path, entry)
    cut.apply(bronze(spark, BATCHES[0]), 0)
    frontier.aim((Target(101, 1),))
    cut.apply(bronze(spark, [change("u", 1, 90, first=True)], first=4), 1)
    assert frontier.passed(101)
    # A new process has only the tables to go by.
    assert reached_by(cut.tables) == frontier.reached == 101


def test_a_batch_that_reaches_no_target_or_is_beyond_it_is_not_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, frontier, _ = started(spark, tmp_path, ORDERS)
    frontier.aim((Target(900, 1),))
    apply_all(spark, table, BATCHES[:2])
    assert not frontier.cuts
    assert not frontier.passed(900)
    # The table has changes from after this one: no version shows it.
    frontier.aim((Target(300, 1),))
    table.apply(bronze(spark, BATCHES[2], first=11), 2)
    assert not frontier.cuts
    assert frontier.passed(300)


@pytest.mark.parametrize(("entry", "point"), POINTS)
def test_a_cut_batch_that_was_killed_ends_the_same(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    entry: SilverEntry,
    point: str,
) -> None:
    whole, _, _ = started(spark, tmp_path / "whole", entry)
    apply_all(spark, whole, BATCHES[:2])
    cut, frontier, record = started(spark, tmp_path / "cut", entry)
    cut.apply(bronze(spark, BATCHES[0]), 0)
    frame = bronze(spark, BATCHES[1], first=4)

    def crash(name: str) -> None:
        if name == point:
            raise CrashError(name)

    with monkeypatch.context() as armed:
        for module in (batch_module, current_rows, history_rows):
            armed.setattr(module, "failpoint", crash)
        frontier.aim((Target(300, 1),))
        with pytest.raises(CrashError):
            cut.apply(frame, 1)
    # A process that starts again knows nothing, and is told another position.
    again = TableFrontier()
    again.aim((Target(310, 1),))
    replace(cut, held=HeldTables(), ended=set(), frontier=again).apply(frame, 1)
    assert content(spark, cut) == content(spark, whole)
    # What a row was before its last change in the batch may be remembered too.
    pairs = zip(offsets(spark, cut), offsets(spark, whole), strict=True)
    assert all(ours >= theirs for ours, theirs in pairs)
    assert record[-1].records == len(BATCHES[1])


def offsets(spark: SparkSession, applier: BatchApplier) -> list[set[int]]:
    """The offsets of the records in each part; what was remembered twice is there once."""
    found = []
    for place in applier.tables.places[1:]:
        name = "offset" if place == applier.tables.quarantine else "__offset"
        found.append({row[0] for row in read(spark, place).select(name).collect()})
    return found

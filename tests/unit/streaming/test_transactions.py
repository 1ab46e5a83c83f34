"""When the tables of a database are aimed at a commit, and which of their versions are noted."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.bronze.commit_positions import stored_position
from spark_jobs.names import TableName, TableVersion
from spark_jobs.silver.frontier import Cut, TableFrontier, Target
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.frontiers import AfterSnapshot
from spark_jobs.storage.lake import Lake
from spark_jobs.streaming.cut_table import CutTable, Places
from spark_jobs.streaming.transactions import PATIENCE_SECONDS, WAIT_SECONDS, Database
from tests.unit.gold.test_transactional import silver


@dataclass
class Table:
    """A table that is there when the test says so."""

    label: str
    reached: int = 0
    aimed: int | None = None
    targets: tuple[Target, ...] = ()
    version: int | None = None
    reads: int = 1_000
    ends: dict[int, int] = field(default_factory=dict)
    frontier: TableFrontier = field(default_factory=TableFrontier)
    made: list[Cut] = field(default_factory=list)
    there: int = 0
    landed: list[int] = field(default_factory=list)

    @property
    def name(self) -> TableName:
        return TableName.parse(f"silver.{self.label}")

    @property
    def topic(self) -> str:
        return f"shop.public.{self.label}"

    def aim(self, targets: tuple[Target, ...]) -> None:
        self.targets, self.aimed, self.version = targets, targets[-1].position, None

    def passed(self, position: int) -> bool:
        return self.reached >= position

    def missed(self, position: int) -> bool:
        return self.passed(position) and self.version is None

    def read_next(self) -> dict[int, int]:
        return {0: self.reads}

    def cuts(self) -> list[Cut]:
        return self.made

    def complete(self, cut: Cut, ends: dict[int, int]) -> bool:
        return bool(ends)

    def landed_by(self, position: int, ends: dict[int, int]) -> TableVersion | None:
        self.landed.append(position)
        return TableVersion("bronze", 1) if position <= self.there else None

    def version_at(self, position: int, ends: dict[int, int]) -> TableVersion | None:
        assert position == self.aimed
        self.ends = ends
        return None if self.version is None else TableVersion(self.label, self.version)


@dataclass
class World:
    tables: tuple[Table, Table]
    database: Database
    now: float = 0.0

    def look(self, position: int | None) -> dict[str, int]:
        def ends(topics: list[str]) -> dict[str, dict[int, int]]:
            return {topic: {0: position or 0} for topic in topics}

        found = self.database.look(position, ends, now=self.now)
        assert {one.position for one in found} <= {self.tables[0].aimed}
        return {one.table.name: one.version.version for one in found}


@pytest.fixture
def world() -> World:
    tables = Table("accounts"), Table("tellers")
    return World(tables, Database("shop", cast("tuple[CutTable, ...]", tables)))


def test_all_tables_are_aimed_at_one_commit_and_then_at_the_next(world: World) -> None:
    one, other = world.tables
    assert world.look(None) == {}
    assert (one.aimed, other.aimed) == (None, None)
    assert world.look(10) == {}
    assert (one.aimed, other.aimed, one.ends) == (10, 10, {0: 10})
    one.version = 3
    assert world.look(20) == {"accounts": 3}
    # One is still on its way.
    assert (one.aimed, world.look(20)) == (10, {})
    other.version = 7
    assert world.look(20) == {"tellers": 7}
    world.look(20)
    assert (one.aimed, other.aimed, one.ends) == (20, 20, {0: 20})


def test_the_newest_position_that_all_tables_read_next_is_aimed_at(world: World) -> None:
    one, other = world.tables
    world.look(10)
    one.reads, other.reads = 30, 20
    for position in (20, 30, 40):
        world.look(position)
    assert one.aimed == 10
    one.version = other.version = 1
    world.look(40)
    world.look(40)
    # 30 and 40 come with a later batch.
    assert (one.aimed, other.aimed) == (20, 20)


def test_where_no_table_reads_a_position_soon_the_newest_is_aimed_at(world: World) -> None:
    one, other = world.tables
    world.look(10)
    one.version = other.version = 1
    one.reads = 0
    world.look(20)
    world.look(30)
    assert one.aimed == 10
    world.now = WAIT_SECONDS + 1
    world.look(30)
    assert (one.aimed, other.aimed) == (30, 30)


def test_a_version_that_moves_at_one_commit_is_noted_again(world: World) -> None:
    world.look(10)
    world.tables[0].version = 3
    assert world.look(10) == {"accounts": 3}
    world.tables[0].version = 4
    assert world.look(10) == {"accounts": 4}


def test_a_table_that_has_passed_a_commit_is_not_waited_for(world: World) -> None:
    one, other = world.tables
    world.look(10)
    one.version, other.reached = 3, 15
    world.look(12)
    # No version of the other shows 10, and none would show 12.
    assert one.aimed == 10
    assert world.look(15) == {}
    world.look(16)
    assert (one.aimed, other.aimed) == (16, 16)


def test_a_table_that_is_behind_is_waited_for_only_so_long(world: World) -> None:
    one, other = world.tables
    world.look(10)
    one.version = 3
    world.look(20)
    assert one.aimed == 10
    world.now = PATIENCE_SECONDS + 1
    world.look(20)
    assert one.aimed == 20
    # The late table can still be cut at the position before.
    assert one.targets == (Target(20, 2),)
    assert other.targets == (Target(10, 1), Target(20, 2))
    # It is late now: the next position waits for the others only.
    one.version = 4
    world.look(20)
    world.look(30)
    assert one.aimed == 30
    # Where it is there in time, it is waited for again.
    other.version = 5
    assert world.look(40) == {"tellers": 5}
    one.version = 6
    world.look(40)
    world.look(40)
    assert one.aimed == 40
    one.version = 7
    world.look(50)
    assert one.aimed == 40


def test_of_a_late_table_with_several_partitions_it_is_noted_when_changes_have_landed(
    world: World,
) -> None:
    """A cut of an old position is complete only if it is known that bronze had all before it."""
    one, other = world.tables

    def ends(topics: list[str]) -> dict[str, dict[int, int]]:
        return {topic: {0: 10, 1: 0} for topic in topics}

    for position in (10, 20, 30):
        world.database.look(position, ends, now=world.now)
        one.version = 3
        world.database.look(position, ends, now=world.now)
        world.now += PATIENCE_SECONDS + 1
    other.there, other.landed = 20, []
    world.database.look(30, ends, now=world.now)
    assert other.landed == [10, 20, 30]
    other.there, other.landed = 5, []
    world.database.look(30, ends, now=world.now)
    assert other.landed == [10], "those after it have not landed either"


def test_tables_that_are_all_late_keep_their_position_for_a_while(world: World) -> None:
    world.look(10)
    for position, now in ((20, 31.0), (30, 32.0), (40, 61.0)):
        world.now = now
        world.look(position)
    assert world.tables[0].aimed == 20
    world.now = 63.0
    world.look(40)
    assert world.tables[0].aimed == 40


def test_a_late_table_that_was_cut_shows_the_position_of_before(world: World) -> None:
    one, other = world.tables
    world.look(10)
    one.version = 3
    world.look(10)
    world.now = PATIENCE_SECONDS + 1
    world.look(20)
    assert other.aimed == 20
    other.made.append(Cut(10, TableVersion("tellers", 8), batch_id=4))
    found = world.database.look(20, dict.fromkeys, now=world.now)
    assert [(one.position, one.table.name, one.version.version) for one in found] == [
        (10, "tellers", 8)
    ]
    assert world.database.look(20, dict.fromkeys, now=world.now) == []


# How old a change is when it is in bronze.
BRONZE_SECONDS = 5


@dataclass
class Stream:
    """A table whose batches read up to a limit, and which is slower than its source.

    Attributes:
        pace: changes that it applies in a second; the source has one position a second.
        longest: positions in a batch at most.
    """

    label: str
    pace: float
    longest: int
    frontier: TableFrontier = field(default_factory=lambda: TableFrontier(reached=0))
    ends_at: float = 0.0

    @property
    def name(self) -> TableName:
        return TableName.parse(f"silver.{self.label}")

    @property
    def topic(self) -> str:
        return self.label

    def aim(self, targets: tuple[Target, ...]) -> None:
        self.frontier.aim(targets)

    def passed(self, position: int) -> bool:
        return self.frontier.passed(position)

    def missed(self, position: int) -> bool:
        return self.passed(position)

    def read_next(self) -> dict[int, int]:
        return {0: 10**9}

    def cuts(self) -> list[Cut]:
        return list(self.frontier.cuts)

    def complete(self, cut: Cut, ends: dict[int, int]) -> bool:
        return True

    def version_at(self, position: int, ends: dict[int, int]) -> TableVersion | None:
        # It is always at a batch.
        return None

    def run(self, now: int) -> None:
        """Begin the next batch, if it is time: it has what bronze has, up to the limit."""
        there, reached = now - BRONZE_SECONDS, self.frontier.reached
        if now < self.ends_at or reached is None or there <= reached:
            return
        lowest = reached + 1
        highest = min(there, reached + self.longest)
        cut_at(self, lowest, highest)
        self.ends_at = now + (highest - lowest + 1) / self.pace


def cut_at(table: Stream, lowest: int, highest: int) -> None:
    """What a batch does with its targets, see ``SilverBatch``."""
    heaviest = max(
        table.frontier.advance(highest, lambda: 0), key=lambda one: one.weight, default=None
    )
    if heaviest is not None:
        version = TableVersion(table.label, heaviest.position)
        table.frontier.cuts.append(Cut(heaviest.position, version, lowest))


@pytest.mark.parametrize(
    ("paces", "longest"),
    [
        ((1.0, 1.0), (10**9, 10**9)),
        ((0.9, 0.6), (60, 200)),
        ((0.5, 0.95), (400, 35)),
        ((100.0, 0.7), (10**9, 90)),
    ],
)
def test_tables_that_are_always_behind_have_commits_in_common(
    paces: tuple[float, float], longest: tuple[int, int]
) -> None:
    tables = tuple(
        Stream(label, pace, limit)
        for label, pace, limit in zip(("accounts", "tellers"), paces, longest, strict=True)
    )
    database = Database("shop", cast("tuple[CutTable, ...]", tables))
    shown: dict[int, set[str]] = {}
    common: list[tuple[int, int]] = []
    for now in range(1, 2_400):
        for table in tables:
            table.run(now)
        found = database.look(now, lambda topics: {t: {0: 0} for t in topics}, now=float(now))
        for one in found:
            shown.setdefault(one.position, set()).add(one.table.name)
            if len(shown[one.position]) == len(tables):
                common.append((now, one.position))
    assert len(common) >= 8
    # The newest in common is not much older than what the slower table has.
    for table in tables:
        assert table.frontier.reached is not None
    slowest = min(table.frontier.reached or 0 for table in tables)
    assert max(position for _, position in common) > 0.6 * slowest
    assert max(len(table.frontier.targets) for table in tables) < 80


ROWS = pa.table(
    {"id": [1], "__sequence": ["00000000000000000050.00000000000000000051.2.0000000001"]}
)


@dataclass
class Real:
    """A table over real logs and checkpoints, without a stream."""

    root: Path
    table: CutTable

    @property
    def tables(self) -> SilverTables:
        return self.table.places.tables

    def land(self, number: int, offset: int) -> None:
        """A batch of bronze that ends at an offset."""
        write_deltalake(self.table.places.bronze, pa.table({"value": [number]}), mode="append")
        self._checkpoint("bronze", number, {"orders": {"0": offset}})

    def apply(self, number: int, *, version: int, rows: pa.Table | None) -> None:
        """A batch of the table that ends before a version of bronze."""
        if rows is not None:
            write_deltalake(self.tables.table, rows, mode="append")
        self._checkpoint("silver", number, {"reservoirVersion": version, "index": -1})

    def _checkpoint(self, name: str, number: int, offsets: dict[str, object]) -> None:
        for folder in ("offsets", "commits"):
            (self.root / name / folder).mkdir(parents=True, exist_ok=True)
            text = f"v1\n{{}}\n{json.dumps(offsets)}"
            (self.root / name / folder / str(number)).write_text(text)


@pytest.fixture
def real(tmp_path: Path) -> Real:
    lake = Lake(str(tmp_path / "lake"))
    tables = SilverTables.of(lake, silver("orders"))
    for place in tables.places:
        write_deltalake(place, ROWS.schema.empty_table())
    bronze = str(tmp_path / "lake" / "raw")
    write_deltalake(bronze, pa.table({"value": pa.array([], pa.int64())}))
    places = Places(
        tables=tables,
        topic="orders",
        bronze=bronze,
        bronze_checkpoint=lambda: str(tmp_path / "bronze"),
        silver_checkpoint=lambda: str(tmp_path / "silver"),
        app=lambda: "silver/orders/1",
        recorded=lambda _: True,
    )
    return Real(tmp_path, CutTable(places, TableFrontier()))


def test_a_quiet_table_shows_a_commit_when_all_that_landed_is_applied(real: Real) -> None:
    table = real.table
    table.aim((Target(60, 1),))
    assert table.version_at(60, {0: 2}) is None, "nothing has landed"
    real.land(0, 1)
    assert table.version_at(60, {0: 2}) is None, "a record is missing"
    real.land(1, 2)
    assert table.version_at(60, {0: 2}) is None, "nothing is applied"
    real.apply(0, version=3, rows=ROWS)
    found = table.version_at(60, {0: 2})
    assert found is not None
    assert (found.version, table.frontier.reached) == (1, 50)
    # A repair makes another version, which shows the same commit.
    write_deltalake(real.tables.table, ROWS, mode="append")
    found = table.version_at(60, {0: 2})
    assert found == TableVersion(found.table_id if found else "", 2)


def test_a_table_without_records_shows_every_commit(real: Real) -> None:
    real.table.aim((Target(60, 1),))
    found = real.table.version_at(60, {0: 0})
    assert found == TableVersion(found.table_id if found else "", 0)


def test_a_table_with_changes_from_after_a_commit_does_not_show_it(real: Real) -> None:
    real.land(0, 1)
    real.apply(0, version=2, rows=ROWS)
    real.table.aim((Target(50, 1),))
    assert real.table.version_at(50, {0: 1}) is None
    assert real.table.missed(50)
    # A batch that goes beyond the position is being cut at it.
    with real.table.frontier.batch:
        assert not real.table.missed(50)


def test_a_table_that_may_show_the_first_transaction_shows_no_snapshot(real: Real) -> None:
    """Without a row of the snapshot in its partition, such a change sorts before its end."""
    real.land(0, 1)
    real.apply(0, version=2, rows=ROWS)
    real.table.frontier.early = True
    real.table.aim((Target(AfterSnapshot(60), 1),))
    assert real.table.version_at(AfterSnapshot(60), {0: 1}) is None
    assert real.table.missed(AfterSnapshot(60))
    # A later position is that of a commit, which comes after the first transaction.
    real.table.aim((Target(70, 2),))
    assert real.table.version_at(70, {0: 1})


def test_tables_are_told_that_a_position_is_that_of_a_snapshot(world: World) -> None:
    stored = stored_position(b'["shop",{"server":"shop"}]', b'{"lsn": 9}')
    assert stored is not None
    world.look(stored[1])
    assert [one.targets[0].position for one in world.tables] == [10, 10]
    assert all(isinstance(one.targets[0].position, AfterSnapshot) for one in world.tables)


def test_a_table_is_left_alone_while_a_batch_is_applied(real: Real) -> None:
    real.land(0, 1)
    real.apply(0, version=2, rows=ROWS)
    real.table.aim((Target(60, 1),))
    with real.table.frontier.batch:
        assert real.table.version_at(60, {0: 1}) is None
    assert real.table.version_at(60, {0: 1})


def test_a_cut_of_several_partitions_counts_when_each_had_landed(real: Real) -> None:
    table, cut = real.table, Cut(60, TableVersion("x", 4), batch_id=1)
    table.aim((Target(60, 1),))
    table.frontier.cuts.append(cut)
    assert table.cuts() == [cut]
    assert table.complete(cut, {0: 9}), "one partition holds commits in their order"
    assert not table.complete(cut, {0: 1, 1: 0}), "nothing has landed"
    real.land(0, 1)
    real.apply(1, version=1, rows=None)
    assert not table.complete(cut, {0: 1, 1: 0}), "the batch ended before what landed"
    real.apply(1, version=2, rows=None)
    assert table.complete(cut, {0: 1, 1: 0})


def test_a_cut_at_an_earlier_commit_does_not_count_for_a_later_one(real: Real) -> None:
    table = real.table
    table.aim((Target(60, 1), Target(70, 2)))
    real.land(0, 1)
    real.apply(0, version=2, rows=ROWS)
    assert table.complete(Cut(60, TableVersion("x", 4), batch_id=0), {0: 1, 1: 0})
    assert table.version_at(70, {0: 2, 1: 0}) is None, "a record is missing"
    # It is known of the earlier one for as long as a batch may take.
    table.aim((Target(70, 2), Target(80, 1)))
    real.land(1, 2)
    assert table.complete(Cut(60, TableVersion("x", 4), batch_id=0), {0: 1, 1: 0})

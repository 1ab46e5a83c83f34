"""Silver follows its source: whatever the order, the batches and the repetitions of its changes.

Each law has histories of its own, one a key, and all of them go through the same few batches. Then
all records are read again, into the table that there is and into a new one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import ApplyMode, SilverEntry, SourceEntry
from spark_jobs.graph.scd2 import HISTORY_COLUMNS
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.log import size
from spark_jobs.storage.reader import read
from tests.properties.silver_model import Change, Database, current_rows, history_rows
from tests.spark.silver.world import applier, bronze, columns, counts

# A long run sets these; the seed and the count of its histories are what it reports.
SEED = int(os.environ.get("TIDEMARK_PROPERTY_SEED", "0"))
HISTORIES = int(os.environ.get("TIDEMARK_PROPERTY_CASES", "160"))
BATCHES = 3
TRANSACTIONS = 30

SOURCE = SourceEntry(
    name="documents",
    format=SourceFormat.DEBEZIUM,
    topic="documents",
    keys=("id",),
    file="sources/documents.yml",
    columns=columns(id="bigint", status="string", body="string"),
)
CURRENT = SilverEntry(
    name="documents",
    source="documents",
    sql="",
    projection="SELECT d.id, d.status, d.body FROM source AS d WHERE d.status <> 'hidden'",
    columns=SOURCE.columns,
    keys=("id",),
    apply=ApplyMode.UPSERT,
    apply_as_deletes="__op = 'd'",
    file="sql/silver/documents.sql",
    fingerprint="1",
)
HISTORY = CURRENT.model_copy(
    update={"apply": ApplyMode.HISTORY, "columns": (*SOURCE.columns, *HISTORY_COLUMNS)}
)
Told = list[Change]
Batches = list[Told]


def in_order(rng: random.Random, history: Told) -> Batches:
    """In the order of commits, cut into batches anywhere."""
    cuts = sorted(rng.choices(range(len(history) + 1), k=BATCHES - 1))
    edges = [0, *cuts, len(history)]
    return [history[edges[at] : edges[at + 1]] for at in range(BATCHES)]


def in_any_order(rng: random.Random, history: Told) -> Batches:
    return in_order(rng, rng.sample(history, len(history)))


def repeated(rng: random.Random, history: Told) -> Batches:
    """In the order of commits, with repetitions of what came before, at once or later."""
    found = in_order(rng, history)
    for at in range(BATCHES):
        before = [change for batch in found[: at + 1] for change in batch]
        found[at] = [*found[at], *rng.choices(before, k=min(len(before), 5))]
    return found


def sent_again(rng: random.Random, history: Told) -> Batches:
    """As Debezium repeats: after a snapshot it sends nothing again that came before it."""
    found = in_order(rng, history)
    for at in range(BATCHES):
        before = [change for batch in found[: at + 1] for change in batch]
        since = max((nr for nr, one in enumerate(before) if one.operation == "r"), default=0)
        found[at] = [*found[at], *rng.choices(before[since:], k=min(len(before) - since, 5))]
    return found


def last_first(rng: random.Random, history: Told) -> Batches:
    """The row is gone before anything that it was arrives."""
    end = history[-1]
    transaction, at = end.transaction + 1, end.at + 1
    gone = replace(end, operation="d", transaction=transaction, number=0, at=at)
    return in_order(rng, [gone, *reversed(history)])


OPEN_TRANSACTION = "open transaction"
# Of each law: how changes arrive, and whether a large value may be left out of them.
LAWS: dict[str, tuple[Callable[[random.Random, Told], Batches], bool]] = {
    "batch split": (in_order, True),
    "duplication": (repeated, True),
    "order": (in_any_order, False),
    "no resurrection": (last_first, False),
    OPEN_TRANSACTION: (sent_again, True),
}


class World:
    """Histories for every law, and the batches in which they arrive.

    In a plain one nothing is truncated, every update is whole, and no transaction was open during a
    snapshot. In an open one such a transaction begins each history, and nothing is truncated, so
    that its rows are there at the end. Each law has so many histories.
    """

    def __init__(
        self, seed: int, *, plain: bool, opened: bool = False, histories: int = HISTORIES
    ) -> None:
        rng = random.Random(seed)
        self.database = Database.of(rng, transactions=TRANSACTIONS)
        if plain or opened:
            self.database = replace(self.database, truncations=())
        self.laws = [law for law in LAWS if not opened or law == OPEN_TRANSACTION]
        self.histories: dict[str, list[Told]] = {law: [] for law in self.laws}
        self.batches: Batches = [[] for _ in range(BATCHES)]
        key = 0
        for law in self.laws:
            arrive, large = LAWS[law]
            began_open = law == OPEN_TRANSACTION and not plain
            while len(self.histories[law]) < histories:
                history = self.database.history(
                    rng, key := key + 1, large=large and not plain, opened=began_open
                )
                if not history:
                    continue
                arrived = arrive(rng, history)
                told = {change.place: change for batch in arrived for change in batch}
                self.histories[law].append([told[place] for place in sorted(told)])
                for batch, more in zip(self.batches, arrived, strict=True):
                    batch.extend(more)
        for batch in self.batches:
            self._mix(rng, batch)

    def _mix(self, rng: random.Random, batch: Told) -> None:
        """Spread the truncations over the batch; they may come late and more than once."""
        for cut in self.database.truncations:
            if rng.random() < 0.6 or batch is self.batches[-1]:
                batch.insert(rng.randrange(len(batch) + 1), cut)

    def frames(self, spark: SparkSession) -> list[DataFrame]:
        found, first = [], 0
        for batch in self.batches:
            records = [change.record() for change in batch]
            told = bronze(spark, records, first=first)
            # Each key has its own snapshots, and in a partition a snapshot comes at one time.
            key = sf.get_json_object(sf.col("key").cast("string"), "$.id")
            partition = sf.coalesce(key.cast("int"), sf.lit(0))
            found.append(told.withColumn("partition", partition).localCheckpoint())
            first += len(records)
        return found

    def expected(self, law: str, entry: SilverEntry) -> set[tuple[object, ...]]:
        model = current_rows if entry is CURRENT else history_rows
        return {
            row
            for history in self.histories[law]
            for row in model([*history, *self.database.truncations])
        }

    def keys(self, law: str) -> set[int | None]:
        return {history[0].key for history in self.histories[law]}


def rows_of(frame: DataFrame, entry: SilverEntry) -> set[tuple[object, ...]]:
    texts = [
        f"unix_seconds({column.name})" if column.type == "timestamp" else column.name
        for column in entry.columns
    ]
    found = [tuple(row) for row in frame.selectExpr(*texts).collect()]
    assert len(found) == len(set(found))
    return set(found)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        pytest.param(CURRENT, "", id="current rows"),
        # Batches that are written without Spark.
        pytest.param(CURRENT, "plain", id="current rows of whole changes"),
        pytest.param(CURRENT, "opened", id="current rows after an open transaction"),
        pytest.param(HISTORY, "", id="SCD type 2"),
    ],
)
def test_the_laws(spark: SparkSession, tmp_path: Path, entry: SilverEntry, kind: str) -> None:
    world = World(SEED, plain=kind == "plain", opened=kind == "opened")
    frames = world.frames(spark)
    live = applier(Lake(str(tmp_path / "live")), SOURCE, entry)
    live.tables.create(spark, SOURCE)
    found = [counts(live.apply(frame, number)) for number, frame in enumerate(frames)]
    assert not size(live.tables.quarantine).files
    if entry is HISTORY:
        taken = sum(one.get("applied", 0) + one.get("superseded", 0) for one in found)
        assert size(live.tables.changes).rows == taken
    rows = rows_of(read(spark, live.tables.table), entry)
    for law in world.laws:
        keys = world.keys(law)
        held = {row for row in rows if row[0] in keys}
        difference = sorted(held ^ world.expected(law, entry), key=repr)[:3]
        assert not difference, f"{law}, seed {SEED}: {difference}"

    together = frames[0].unionAll(frames[1]).unionAll(frames[2])
    counts(replace(live, epoch=2).apply(together, 0))
    assert rows_of(read(spark, live.tables.table), entry) == rows
    replayed = applier(Lake(str(tmp_path / "replayed")), SOURCE, entry)
    replayed.tables.create(spark, SOURCE)
    counts(replayed.apply(together, 0))
    assert rows_of(read(spark, replayed.tables.table), entry) == rows

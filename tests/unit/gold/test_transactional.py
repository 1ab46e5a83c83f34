"""The versions at which views show whole transactions, chosen from what is noted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.definitions.vocabulary import Consistency, SourceFormat
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.refresh.observe import newest, observe, pinned_for
from spark_jobs.gold.refresh.transactional import transactional_pins
from spark_jobs.graph.databases import database_of, transactional_inputs, transactional_tables
from spark_jobs.graph.manifest import (
    ApplyMode,
    Column,
    GoldEntry,
    Manifest,
    SilverEntry,
    SourceEntry,
)
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.sections import GoldSettings
from spark_jobs.settings import load_settings
from spark_jobs.state.frontiers import TableAtFrontier
from spark_jobs.state.progress import Heartbeat, StreamProgress
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now

TABLES = ("accounts", "tellers", "branches")
VIEWS = {
    "sums": (("silver.accounts", "silver.tellers"), None),
    "all_sums": (tuple(f"silver.{name}" for name in TABLES), None),
    "one": (("silver.accounts",), None),
    "one_whole": (("silver.accounts", "silver.clicks"), Consistency.TRANSACTIONAL),
    "loose": (("silver.accounts", "silver.tellers"), Consistency.NEWEST),
    "mixed": (("silver.accounts", "silver.clicks"), None),
}
COLUMNS = (Column(name="id", type="bigint"),)


@dataclass
class World:
    context: GoldContext

    def append(self, *tables: str) -> None:
        for table in tables:
            write_deltalake(self.place(table), pa.table({"id": [1]}), mode="append")

    def place(self, table: str) -> str:
        return self.context.locations.of(TableName.parse(f"silver.{table}"))

    def note(self, position: int, **versions: int) -> None:
        """Say that tables show a position at versions."""
        self.context.store.note_frontiers(
            TableAtFrontier(
                "shop",
                position,
                TableName.parse(f"silver.{table}"),
                TableVersion(str(DeltaTable(self.place(table)).metadata().id), version),
                utc_now(),
            )
            for table, version in versions.items()
        )

    def read(self, view: str, tick: str = "") -> dict[str, int | None]:
        pin = pinned_for(self.context, view, tick) if tick else newest
        seen = observe(self.context, view, pin=pin)
        return {one.table.name: one.pinned and one.pinned.version for one in seen.inputs}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    manifest = Manifest(
        project="test",
        sources={name: source(name) for name in (*TABLES, "clicks")},
        silver={name: silver(name) for name in (*TABLES, "clicks")},
        gold={name: gold(name, *facts) for name, facts in VIEWS.items()},
    )
    with ControlStore.open(settings.control_url) as store:
        made = World(GoldContext(settings, manifest, store))
        for _ in range(6):
            made.append(*TABLES, "clicks")
        yield made


def source(name: str) -> SourceEntry:
    captured = name in TABLES
    return SourceEntry(
        name=name,
        format=SourceFormat.DEBEZIUM if captured else SourceFormat.JSON,
        topic=f"shop.public.{name}" if captured else name,
        table=f"public.{name}" if name == "accounts" else None,
        columns=COLUMNS,
        file=f"sources/{name}.yml",
    )


def silver(name: str) -> SilverEntry:
    return SilverEntry(
        name=name,
        source=name,
        sql="",
        projection="",
        columns=COLUMNS,
        apply=ApplyMode.UPSERT,
        file=f"sql/silver/{name}.sql",
        fingerprint="1",
    )


def gold(name: str, inputs: tuple[str, ...], consistency: Consistency | None) -> GoldEntry:
    return GoldEntry(
        name=name,
        description="A view.",
        owner="tests",
        refresh="bulk",
        consistency=consistency,
        sql="",
        query="",
        inputs=inputs,
        columns=(),
        fingerprint=name,
        deterministic=True,
        reads_clock=False,
        file=f"sql/gold/{name}.sql",
        tier=0,
    )


def test_views_over_several_tables_of_a_database_read_them_together(world: World) -> None:
    manifest = world.context.manifest
    assert {name for name in VIEWS if transactional_inputs(manifest, name)} == {
        "sums",
        "all_sums",
        "one_whole",
    }
    assert [one.name for one in transactional_tables(manifest)["shop"]] == sorted(TABLES)
    assert database_of(manifest.sources["tellers"]) == "shop"
    assert database_of(manifest.sources["clicks"]) is None


def test_tables_that_no_stream_writes_are_read_at_their_newest(world: World) -> None:
    assert world.read("sums") == {"accounts": 5, "tellers": 5}
    assert observe(world.context, "sums", pin=newest).parked is None


def test_a_view_waits_for_the_first_commit_of_tables_that_a_stream_writes(world: World) -> None:
    progress = StreamProgress(
        query="silver.tellers", batch_id=0, records=1, at=utc_now(), heartbeat_at=utc_now()
    )
    world.context.store.record_reports([progress])
    seen = observe(world.context, "sums", pin=newest)
    assert seen.parked is not None
    assert seen.parked.code is ReasonCode.WAITS_FOR_TRANSACTION
    assert "kafka_connect.offsets_topic" in seen.parked.text
    assert observe(world.context, "loose", pin=newest).parked is None
    world.note(10, accounts=1, tellers=2)
    assert world.read("sums") == {"accounts": 1, "tellers": 2}


def test_the_newest_commit_that_all_tables_have_is_read(world: World) -> None:
    world.note(10, accounts=1, tellers=1, branches=1)
    world.note(20, accounts=3, tellers=2)
    assert world.read("sums") == {"accounts": 3, "tellers": 2}
    # The table that fell behind holds back its own readers only.
    assert world.read("all_sums") == {"accounts": 1, "tellers": 1, "branches": 1}
    assert world.read("one_whole") == {"accounts": 3, "clicks": 5}
    assert world.read("loose") == {"accounts": 5, "tellers": 5}
    assert world.read("mixed") == {"accounts": 5, "clicks": 5}


def test_a_view_waits_while_its_tables_have_no_commit_in_common(world: World) -> None:
    world.note(10, accounts=1)
    world.note(20, tellers=2)
    seen = observe(world.context, "sums", pin=newest)
    assert seen.parked is not None
    assert seen.parked.code is ReasonCode.WAITS_FOR_TRANSACTION
    assert "silver.accounts is behind" in seen.parked.text
    assert observe(world.context, "loose", pin=newest).parked is None


def test_a_note_of_another_table_or_of_a_lost_version_counts_for_nothing(world: World) -> None:
    world.note(10, accounts=1, tellers=1)
    world.note(20, accounts=9, tellers=2)
    assert world.read("sums") == {"accounts": 1, "tellers": 1}
    write_deltalake(world.place("tellers"), pa.table({"id": [1]}), mode="overwrite")
    stranger = TableVersion("another", 3)
    name = TableName.parse("silver.tellers")
    world.note(30, accounts=3)
    world.context.store.note_frontiers([TableAtFrontier("shop", 30, name, stranger, utc_now())])
    assert world.read("sums") == {"accounts": 1, "tellers": 1}


def test_the_views_of_a_tick_share_one_commit(world: World) -> None:
    world.note(10, accounts=1, tellers=1, branches=1)
    world.note(20, accounts=3, tellers=2)
    # Most tables decide: the others are pinned at their newest.
    assert world.read("all_sums", "t1") == {"accounts": 1, "tellers": 1, "branches": 1}
    world.note(30, accounts=5, tellers=5, branches=5)
    assert world.read("sums", "t1") == {"accounts": 1, "tellers": 1}
    assert world.read("one", "t1") == {"accounts": 1}
    assert world.read("loose", "t1") == {"accounts": 5, "tellers": 5}
    assert world.read("sums", "t2") == {"accounts": 5, "tellers": 5}


def test_pins_are_the_newest_where_nothing_is_noted(world: World) -> None:
    versions = {TableName.parse("silver.accounts"): TableVersion("a", 5)}
    assert transactional_pins(world.context, versions) == versions


def test_a_refresh_waits_until_whole_transactions_cover_what_is_there(world: World) -> None:
    world.note(10, accounts=1, tellers=1, branches=1)
    # Nobody waits for an application that does not run.
    assert world.read("sums", "t1") == {"accounts": 1, "tellers": 1}
    world.context.store.record_reports([Heartbeat(query="silver.accounts", at=utc_now())])
    later = threading.Timer(0.6, lambda: world.note(20, accounts=5, tellers=5, branches=5))
    later.start()
    assert world.read("sums", "t2") == {"accounts": 5, "tellers": 5}
    later.join()


def test_a_refresh_waits_no_longer_than_the_setting_says(world: World) -> None:
    world.note(10, accounts=1, tellers=1, branches=1)
    world.context.store.record_reports([Heartbeat(query="silver.accounts", at=utc_now())])
    gold = GoldSettings(transaction_wait_seconds=0)
    settings = world.context.settings.model_copy(update={"gold": gold})
    world.context = GoldContext(settings, world.context.manifest, world.context.store)
    before = utc_now()
    assert world.read("sums", "t1") == {"accounts": 1, "tellers": 1}
    assert utc_now() - before < timedelta(seconds=8)

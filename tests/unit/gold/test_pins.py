"""The versions that the views of one tick share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.refresh.ledger import sweep
from spark_jobs.gold.refresh.observe import observe, pinned_for
from spark_jobs.graph.manifest import GoldEntry, Manifest
from spark_jobs.names import TableName
from spark_jobs.sections import GoldSettings
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.errors import LogUnreadableError

INPUTS = {
    "spending": ("silver.orders", "silver.users"),
    "refunds": ("silver.refunds", "silver.orders"),
    "ranking": ("gold.spending", "bronze.limits"),
}
BASE = ("bronze.limits", "silver.orders", "silver.refunds", "silver.users")


@dataclass
class World:
    """Three views over four tables of which each append makes one more version."""

    context: GoldContext

    def append(self, *tables: str) -> None:
        for table in tables:
            location = self.context.locations.of(TableName.parse(table))
            write_deltalake(location, pa.table({"id": [1]}), mode="append")

    def pinned(self, view: str, tick: str) -> dict[str, int | None]:
        """The version of each input that a view would read, None where there is no table."""
        seen = observe(self.context, view, pin=pinned_for(self.context, view, tick))
        return {str(one.table): one.pinned and one.pinned.version for one in seen.inputs}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    entries = {
        name: GoldEntry(
            name=name,
            description="A view.",
            owner="tests",
            refresh="bulk",
            sql="",
            query="",
            inputs=inputs,
            columns=(),
            fingerprint=name,
            deterministic=True,
            reads_clock=False,
            file=f"sql/gold/{name}.sql",
            tier=int(any(one.startswith("gold.") for one in inputs)),
        )
        for name, inputs in INPUTS.items()
    }
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    with ControlStore.open(settings.control_url) as store:
        manifest = Manifest(project="test", gold=entries)
        made = World(GoldContext(settings, manifest, store))
        made.append(*BASE)
        yield made


def test_the_first_view_pins_the_inputs_of_all(world: World) -> None:
    assert world.pinned("spending", "t1") == {"silver.orders": 0, "silver.users": 0}
    world.append(*BASE)
    assert world.pinned("refunds", "t1") == {"silver.refunds": 0, "silver.orders": 0}
    assert world.pinned("refunds", "t2") == {"silver.refunds": 1, "silver.orders": 1}
    assert world.pinned("spending", "t1") == {"silver.orders": 0, "silver.users": 0}


def test_a_gold_table_is_pinned_by_its_first_reader(world: World) -> None:
    world.append("gold.spending")
    world.pinned("spending", "t1")
    assert sorted(map(str, world.context.store.pins("t1"))) == sorted(BASE)
    world.append("gold.spending", "bronze.limits")
    assert world.pinned("ranking", "t1") == {"gold.spending": 1, "bronze.limits": 0}
    world.append("gold.spending")
    assert world.pinned("ranking", "t1") == {"gold.spending": 1, "bronze.limits": 0}


def test_a_table_that_comes_later_is_pinned_by_its_first_reader(world: World) -> None:
    location = Path(world.context.locations.of(TableName.parse("silver.refunds")))
    location.rename(location.with_name("elsewhere"))
    assert world.pinned("refunds", "t1") == {"silver.refunds": None, "silver.orders": 0}
    world.append("silver.refunds", "silver.orders")
    assert world.pinned("refunds", "t1") == {"silver.refunds": 0, "silver.orders": 0}


def test_a_table_that_cannot_be_read_troubles_its_readers_only(world: World) -> None:
    location = Path(world.context.locations.of(TableName.parse("silver.refunds")))
    (location / "_delta_log/00000000000000000000.json").write_text("no log")
    assert world.pinned("spending", "t1") == {"silver.orders": 0, "silver.users": 0}
    with pytest.raises(LogUnreadableError):
        world.pinned("refunds", "t1")


def test_pins_are_swept_when_the_settings_keep_them_no_longer(world: World) -> None:
    context = world.context
    world.pinned("spending", "t1")
    sweep(context, "spending")
    assert len(context.store.pins("t1")) == len(BASE)
    at_once = context.settings.model_copy(update={"gold": GoldSettings(tick_days=1e-9)})
    sweep(GoldContext(at_once, context.manifest, context.store), "spending")
    assert context.store.pins("t1") == {}

"""Small projects whose control database and lake are real; no JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from spark_jobs.definitions.vocabulary import RefreshPolicy
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.explain.impact import impact
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.manifest import Column, GoldEntry, Manifest
from spark_jobs.planning.impact import ViewImpact, version_range
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log
from spark_jobs.storage.compiled import compile_settings
from tests.unit.gold.attempts import ORDERS

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
FED = {"delta.enableChangeDataFeed": "true"}
VIEWS = {
    "sums": "SELECT o.user_id, SUM(o.amount) AS total FROM bronze.orders AS o GROUP BY o.user_id",
    "best": "SELECT s.user_id FROM gold.sums AS s WHERE s.total > 5",
    "notes": "SELECT o.order_id, o.note FROM bronze.orders AS o",
    "first_notes": "SELECT n.note FROM gold.notes AS n",
    "by_hand": "SELECT o.order_id FROM bronze.orders AS o",
    "other": "SELECT u.user_id FROM bronze.users AS u",
}
STRATEGIES = {"by_hand": "full"}


@dataclass
class Shop:
    context: GoldContext
    project: Path

    @property
    def orders(self) -> DeltaTable:
        return DeltaTable(self.project / "data" / "orders")

    def asked(
        self, table: str = "bronze.orders", versions: str | None = None
    ) -> dict[str, ViewImpact]:
        range_ = None if versions is None else version_range(versions)
        found = impact(self.context, table, versions=range_, now=NOON)
        return {one.plan.view: one for one in found.views}

    def publish(self, view: str, *, follows: int | None = None) -> None:
        """Publish ten rows at the inputs' newest versions; the content is beside the point."""
        entry, context = self.context.manifest.gold[view], self.context
        inputs = context.manifest.inputs_of(view)
        found = {table: log.table_version(context.locations.of(table)) for table in inputs}
        mark = Watermark(
            view=view,
            sequence=1,
            epoch=1,
            fingerprint=entry.fingerprint,
            rule="full",
            vector=VersionVector({table: at for table, at in found.items() if at is not None}),
            tick="t1",
            attempt="a1",
            clock=NOON,
            follows=follows,
        )
        said = CommitProperties(custom_metadata={"userMetadata": json.dumps(mark.as_metadata())})
        rows = pa.table({"row": list(range(10))})
        location = context.published_at(view)
        write_deltalake(location, rows, mode="append", configuration=FED, commit_properties=said)

    def update(self, column: str, value: str, where: str) -> None:
        self.orders.update(updates={column: value}, predicate=where)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    orders = {
        "order_id": pa.array(range(100), pa.int64()),
        "user_id": pa.array([one % 7 for one in range(100)], pa.int64()),
        "amount": pa.array(range(100), pa.int64()),
        "note": pa.array(["a"] * 100, pa.string()),
    }
    for table, rows in (("orders", orders), ("users", {"user_id": pa.array([1], pa.int64())})):
        file = tmp_path / "sources" / f"{table}.yml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"format: delta\nlocation: data/{table}\n")
        write_deltalake(tmp_path / "data" / table, pa.table(rows), configuration=FED)
    for name, query in VIEWS.items():
        file = tmp_path / "sql" / "gold" / f"{name}.sql"
        file.parent.mkdir(parents=True, exist_ok=True)
        strategy = STRATEGIES.get(name, "incremental")
        head = f"description: d\nowner: o\nrefresh: bulk\nstrategy: {strategy}"
        file.write_text(f"/* gold\n{head}\n*/\n{query}\n")
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    with ControlStore.open(settings.control_url) as store:
        found = Shop(Refresher(settings, compile_settings(settings), store).context, tmp_path)
        for tier in found.context.manifest.gold_by_tier():
            for entry in tier:
                found.publish(entry.name)
        yield found


@pytest.fixture
def context(tmp_path: Path) -> Iterator[GoldContext]:
    """A project of one gold view over one table."""
    settings = load_settings(tmp_path, state_dir=tmp_path / "state", environment="test")
    settings.state.mkdir()
    view = GoldEntry(
        name="spend",
        description="Spend.",
        owner="tests",
        refresh=RefreshPolicy.BULK,
        sql="SELECT 1",
        query="SELECT o.user_id FROM silver.orders AS o",
        inputs=(str(ORDERS),),
        columns=(Column(name="user_id", type="bigint", description="who"),),
        fingerprint="f",
        deterministic=True,
        reads_clock=False,
        file="sql/gold/spend.sql",
        tier=0,
    )
    with ControlStore.open(settings.control_url) as store:
        yield GoldContext(settings, Manifest(project="shop", gold={"spend": view}), store)

"""A project over a Delta table that was applied and published, for tests of environments."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.deploy.kept_settings import kept_settings
from spark_jobs.gold.environment.surroundings import known_environment, only_writer
from spark_jobs.gold.refresh.steps import Outcome, Refresher
from spark_jobs.graph.manifest import Manifest
from spark_jobs.rollout.apply import Applied, only_apply
from spark_jobs.rollout.environments import (
    apply_environment,
    plan_environment,
    surroundings_of,
)
from spark_jobs.rollout.promotion import Promoter
from spark_jobs.rollout.promotion_plan import plan_promotion
from spark_jobs.sections import GoldSettings
from spark_jobs.serving.project import applied_manifest
from spark_jobs.serving.sql.session import QuerySession
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.environments import Environment
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import reader
from spark_jobs.storage.compiled import compiled
from spark_jobs.storage.lake import Lake
from tests.compiling import put_compiled
from tests.deployments import put_in_force
from tests.golden.declaration_cases import RIGHT, write_project
from tests.spark.right import assert_right

HEADER = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"
TOTALS = (
    "SELECT s.buyer, SUM(s.amount) AS total, COUNT(*) AS sales\nFROM bronze.sales AS s\n"
    "GROUP BY ALL"
)
BEST = "SELECT t.buyer, t.total, t.total * 2 AS twice FROM gold.totals AS t WHERE t.total > 15"
COUNTS = "SELECT t.buyer, t.sales FROM gold.totals AS t"
# No row of ``totals`` is as before.
DOUBLED = TOTALS.replace("SUM(s.amount)", "SUM(s.amount) * 2")
ROWS = {"buyer": [1, 1, 2, 3], "amount": [5, 10, 20, 30]}


@dataclass
class Shop:
    """The project; each call opens what a command would open."""

    settings: Settings
    store: ControlStore
    spark: SparkSession

    def write(self, **views: str) -> None:
        """Change the SQL of views in the project's files."""
        for name, sql in views.items():
            path = self.settings.project_dir / f"sql/gold/{name}.sql"
            path.write_text(HEADER + sql + "\n")

    def suite(self, view: str, **kwargs: Any) -> None:
        """Give a view a critical rule about one of its columns."""
        text = RIGHT["expectations/gold/spend.json"].replace("spend", view)
        path = self.settings.project_dir / f"expectations/gold/{view}.json"
        for old, new in kwargs.items():
            text = text.replace(old, new)
        path.write_text(text)

    def sell(self, **rows: list[int]) -> None:
        """Add sales."""
        columns = {name: pa.array(values, pa.int64()) for name, values in rows.items()}
        place = self.settings.project_dir / "sales"
        config = {"delta.enableChangeDataFeed": "true"}
        write_deltalake(place, pa.table(columns), mode="append", configuration=config)

    @property
    def project(self) -> Manifest:
        return compiled(self.settings)

    @property
    def in_force(self) -> Manifest:
        return applied_manifest(self.settings)

    def applied(self) -> None:
        """Put the project in force."""
        newest = self.store.newest_deployment()
        number = newest.number + 1 if newest else 1
        manifest = self.project.model_copy(update={"deployment": f"d{number}"})
        text, kept = manifest.model_dump_json(), kept_settings(self.settings)
        put_in_force(self.store, text, number=number, name=f"d{number}", settings=kept)
        put_compiled(self.settings, manifest)

    @property
    def refresher(self) -> Refresher:
        return Refresher(
            self.settings, self.in_force, self.store, session_factory=lambda _: self.spark
        )

    def refresh(self, tick: str) -> dict[str, Outcome]:
        """Refresh every view, as one tick does."""
        tiers = self.in_force.gold_by_tier()
        views = [entry.name for tier in tiers for entry in tier if entry.name in PUBLISHED]
        return {view: self.refresher.run(view, tick=tick) for view in views}

    def build(self, name: str = "ana") -> Environment:
        """What ``tidemark apply --env`` does."""
        planned = plan_environment(self.settings, self.store, self.project, name, who="tests")
        context = surroundings_of(self.settings, self.store, planned, lambda _: self.spark)
        return apply_environment(context, planned, watch=lambda _: nullcontext())

    def promote(self, name: str = "ana") -> Applied:
        """What ``tidemark env promote`` does."""
        with only_apply(self.settings, self.store), only_writer(self.settings, name):
            found = plan_promotion(self.store, known_environment(self.store, name))
            refresher = Refresher(
                self.settings,
                found.planned.project,
                self.store,
                session_factory=lambda _: self.spark,
            )
            promoter = Promoter(refresher, found, "tests")
            return promoter.run(watch=lambda _: nullcontext(lambda _: None))

    def query(self, sql: str, env: str | None = None) -> list[tuple[Any, ...]]:
        """The rows that ``tidemark query`` shows, sorted."""
        session = QuerySession(self.settings, 0, 0, environment=env)
        session.__dict__["spark"] = self.spark
        rows = session.run(session.pinned(sql)).rows.to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=str)

    def rows(self, view: str) -> list[tuple[Any, ...]]:
        """The rows of production's table, sorted."""
        frame = reader.read(self.spark, f"{self.settings.lake}/gold/{view}")
        return sorted(tuple(row) for row in frame.collect())

    def assert_right(self, view: str) -> None:
        """Fail unless the published table equals its SQL over what is published now."""
        assert_right(self.refresher.context, view)

    def files(self, name: str = "ana") -> list[Path]:
        """Everything that an environment has in the lake."""
        folder = Path(Lake(self.settings.lake).environment(name))
        return [one for one in folder.rglob("*") if one.is_file()]


PUBLISHED = ("totals", "best", "counts", "fresh")


def shop_at(folder: Path) -> Settings:
    """The settings of the project below a folder."""
    # What a killed process holds ends within seconds.
    gold = GoldSettings(lease_seconds=20)
    return load_settings(folder / "shop", state_dir=folder / "state", gold=gold)


def make_shop(folder: Path, store: ControlStore, spark: SparkSession) -> Shop:
    """A project whose views are applied and published."""
    files = {f"sql/gold/{name}.sql": "" for name in ("totals", "best", "counts")}
    source = {"sources/sales.yml": "format: delta\nlocation: sales\n"}
    write_project(folder / "shop", {**files, **source})
    shop = Shop(shop_at(folder), store, spark)
    shop.write(totals=TOTALS, best=BEST, counts=COUNTS)
    shop.sell(**ROWS)
    shop.applied()
    shop.refresh("first")
    return shop

"""A separate lake for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.graph.manifest import Manifest
from spark_jobs.sections import Engine
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.store import ControlStore
from tests.servers import Postgres, running_postgres
from tests.shipped import shipped_project
from tests.spark.gold_project import GoldProject
from tests.spark.templates import Templates

ORDERS = """SELECT o.order_id, o.customer, CAST(o.amount AS DECIMAL(12, 2)) AS amount
FROM VALUES (1L, 'ann', 10.00), (2L, 'bob', 5.50), (3L, NULL, NULL)
AS o (order_id, customer, amount)"""
TOTALS = """SELECT o.customer AS customer, COUNT(*) AS orders, SUM(o.amount) AS amount
FROM silver.orders AS o GROUP BY o.customer"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an empty project directory with its own state directory."""
    project = tmp_path / "project"
    project.mkdir()
    return load_settings(
        project,
        state_dir=tmp_path / "state",
        spark={"master": "local[2]", "driver_memory": "1g"},
    )


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    """Template tables, which tests copy."""
    return Templates(tmp_path_factory.mktemp("templates"))


@pytest.fixture
def gold(spark: SparkSession, settings: Settings, templates: Templates) -> Iterator[GoldProject]:
    """A project with silver.orders(order_id, customer, amount) and the view ``totals`` over it."""
    with ControlStore.open(settings.control_url) as store:
        project = GoldProject(spark, settings, store, templates=templates)
        project.append("silver.orders", ORDERS)
        project.view("totals", TOTALS)
        yield project


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests with both engines, those on Spark are in the long tier unless marked otherwise."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        by_spark = parameters.get("each_engine") is Engine.SPARK
        if by_spark and not item.get_closest_marker("both_engines"):
            item.add_marker("long")


@pytest.fixture(scope="module", params=Engine)
def each_engine(request: pytest.FixtureRequest, quick_engines: None) -> Iterator[Engine]:
    """Parametrizes the engine of refreshes, in settings that are loaded later."""
    del quick_engines
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_GOLD__ENGINE", request.param)
        yield request.param


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A cluster that lives as long as the test run."""
    with running_postgres(loopback=True) as server:
        yield server


@pytest.fixture(scope="session")
def shipped() -> Manifest:
    """The project of this repository."""
    return shipped_project()

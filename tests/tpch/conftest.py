"""A TPC-H project whose tables another writer changed twice, and one Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.tpch.project import DATA, write_project
from benchmarks.tpch.refresh_sets import apply
from benchmarks.tpch.tables import versions
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer, TableName, TableVersion
from spark_jobs.settings import Settings, load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage import log
from spark_jobs.storage.compiled import compile_settings
from tests.tpch.tpch_project import SCALE, SEED, SHARES, Tpch

# The plans are large and the tables small: planning again between stages costs more than it gains.
# Code is compiled as in production, which the session of the tests does not do.
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of a project whose tables are as generated."""
    folder = tmp_path_factory.mktemp("tpch")
    write_project(folder, scale=SCALE, strategies=[Strategy.INCREMENTAL])
    return load_settings(folder)


@pytest.fixture(scope="session")
def manifest(settings: Settings) -> Manifest:
    """The compiled project."""
    return compile_settings(settings)


@pytest.fixture(scope="session")
def tpch(settings: Settings, manifest: Manifest, spark: SparkSession) -> Iterator[Tpch]:
    """The project after all refresh sets."""
    lake = settings.project_dir / DATA
    states = [versions(lake)]
    for step, share in enumerate(SHARES, start=1):
        states.append(apply(lake, share=share, seed=SEED, step=step).versions)
    with ControlStore.open(settings.control_url) as store:
        for tick, state in enumerate(states):
            store.pin_versions(
                f"t{tick}", {_bronze(name): _pin(lake, name, at) for name, at in state.items()}
            )
        session = spark.newSession()
        for key, value in QUICK.items():
            session.conf.set(key, value)
        refresher = Refresher(settings, manifest, store, session_factory=lambda _: session)
        yield Tpch(lake, tuple(states), refresher)


def _bronze(name: str) -> TableName:
    return TableName(Layer.BRONZE, name)


def _pin(lake: Path, name: str, version: int) -> TableVersion:
    found = log.table_version(str(lake / name))
    assert found is not None
    return TableVersion(found.table_id, version)

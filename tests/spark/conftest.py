"""One classic Spark session for the whole run, and a lake of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.settings import Settings, SparkSettings, load_settings
from spark_jobs.storage.session import driver_session


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the session's Spark; its tables may lie anywhere."""
    project = tmp_path_factory.mktemp("spark")
    return load_settings(
        project,
        state_dir=project / "state",
        spark=SparkSettings(master="local[2]", driver_memory="1g"),
    )


@pytest.fixture(scope="session")
def spark(spark_settings: Settings) -> Iterator[SparkSession]:
    """The session; one JVM serves every test."""
    session = driver_session(spark_settings, "tests", conf={"spark.ui.enabled": "false"})
    yield session
    session.stop()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an empty project directory with a state directory of its own."""
    project = tmp_path / "project"
    project.mkdir()
    return load_settings(
        project,
        state_dir=tmp_path / "state",
        spark=SparkSettings(master="local[2]", driver_memory="1g"),
    )

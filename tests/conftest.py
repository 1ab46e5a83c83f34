"""Marks for all tests by folder, Hypothesis profiles, and the Spark session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from spark_jobs.java_options import LONG_RUN, SHORT_RUN
from spark_jobs.sections import SparkSettings
from spark_jobs.settings import load_settings
from spark_jobs.storage.session import driver_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.timing", "tests.stacks"]

TESTS = Path(__file__).parent
MARKS = {
    "unit": "unit",
    "golden": "unit",
    "spark": "spark",
    "tpch": "spark",
    "properties": "spark",
    "walk": "unit",
    "dags": "airflow",
    "e2e": "services",
    "cluster": "cluster",
    "cassandra": "cassandra",
    "s3": "s3",
}

_STACKS = ("services", "cluster", "cassandra", "s3")

# Background jobs of a shell ignore Ctrl-C, and programs that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# As printed by `make durations`.
LONGEST = Path(__file__).with_name("longest.txt").read_text("utf-8").split()

# Thousands of short queries are planned: a large young generation avoids full collections.
ROOMY = "-Xms3g -Xmn1500m -XX:MetaspaceSize=256m"

settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile(
    "ci", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if TESTS not in item.path.parents:
            item.add_marker("unit")
            continue
        item.add_marker(mark_of(item))
    items.sort(key=place_of)


@pytest.fixture(scope="module", autouse=True)
def quick_engines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Refreshes by DuckDB, and JVMs that start quickly.

    The tests of a whole stack run on its defaults. Tests of an engine choose it themselves.
    """
    folder = request.path.relative_to(TESTS).parts[0] if TESTS in request.path.parents else ""
    if MARKS.get(folder) in _STACKS:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_GOLD__ENGINE", "auto")
        if MARKS.get(folder) != "unit":
            patch.setenv("TIDEMARK_SPARK__JAVA_OPTIONS", SHORT_RUN)
        yield


def place_of(item: pytest.Item) -> int:
    """The order of a test's module: the slowest first, the others in random order.

    Workers run whole modules, so one that takes minutes must not start last.
    """
    name = item.nodeid.partition("::")[0]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def mark_of(item: pytest.Item) -> str:
    """The lane of a test, by its folder; a property that needs no Spark is a unit test."""
    mark = MARKS[item.path.relative_to(TESTS).parts[0]]
    needs_spark = "spark" in getattr(item, "fixturenames", ())
    return "unit" if "properties" in item.path.parts and not needs_spark else mark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One classic session for the whole run, configured for few rows; tables may be anywhere."""
    from spark_jobs.testing.run import FEW_ROWS

    project = tmp_path_factory.mktemp("spark")
    session = driver_session(
        load_settings(
            project,
            state_dir=project / "state",
            spark=SparkSettings(
                master="local[2]",
                driver_memory="3g",
                java_options=f"{LONG_RUN} {ROOMY}",
            ),
        ),
        "tests",
        conf={"spark.ui.enabled": "false", **FEW_ROWS},
    )
    yield session
    session.stop()


@pytest.fixture(scope="module")
def compiled(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with code generation, as in a pipeline, for this module."""
    from spark_jobs.testing.run import FEW_ROWS

    for key in FEW_ROWS:
        spark.conf.unset(key)
    spark.conf.set("spark.sql.shuffle.partitions", str(SparkSettings().shuffle_partitions))
    yield spark
    for key, value in FEW_ROWS.items():
        spark.conf.set(key, value)

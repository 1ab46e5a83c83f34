"""One object store for the whole run, started as the stack starts it, and one session over it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_jobs.settings import Settings, use_object_store
from spark_jobs.storage.session import driver_session
from tests.e2e.running import new_stack


@pytest.fixture(scope="session")
def served() -> Iterator[Settings]:
    """The settings of a stack that only runs the object store."""
    with new_stack(secured=False, local={"object_store": True}) as running:
        running.up("object-store")
        yield running.settings


@pytest.fixture
def store(served: Settings) -> Settings:
    """The same, with this process as a client; other tests have their own stores."""
    use_object_store(served)
    return served


@pytest.fixture(scope="session")
def spark(served: Settings) -> Iterator[SparkSession]:
    """A classic session with its lake in the store."""
    use_object_store(served)
    session = driver_session(served, "tests", conf={"spark.ui.enabled": "false"})
    yield session
    session.stop()


@pytest.fixture
def location(store: Settings) -> str:
    """The location for a test's table."""
    return f"{store.lake}/bronze/{uuid.uuid4().hex}"

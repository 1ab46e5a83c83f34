"""One server for the whole run, started as the stack starts it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spark_jobs.sinks.target import Addresses
from spark_jobs.stack.sink_addresses import sink_addresses
from tests.e2e.running import RunningStack, new_stack
from tests.unit.sinks.conftest import make, table

__all__ = ["make", "table"]


@pytest.fixture(scope="session")
def stack() -> Iterator[RunningStack]:
    with new_stack(secured=False) as running:
        running.up("cassandra")
        yield running


@pytest.fixture
def addresses(stack: RunningStack) -> Addresses:
    return Addresses(cassandra=sink_addresses(stack.settings).cassandra)

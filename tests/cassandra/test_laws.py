"""What holds for every sink holds for one to Cassandra."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.access.cassandra import cassandra_cluster
from spark_jobs.definitions.vocabulary import RedisFormat, SinkSystem
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.target import Addresses
from spark_jobs.sinks.verify import verify_sink
from tests.unit.sinks import test_crashes, test_delivery
from tests.unit.sinks.conftest import Make, Table, no_spark, rows, sink_of_users
from tests.unit.sinks.test_histories import COMMITS, change

Law = Callable[..., None]
LAWS = {
    name: one
    for name, one in vars(test_delivery).items()
    if name.startswith("test_") and "system" in signature(one).parameters
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_it_is_a_sink_like_the_others(law: Law, request: pytest.FixtureRequest) -> None:
    given: dict[str, Any] = {"system": SinkSystem.CASSANDRA, "form": RedisFormat.HASH}
    law(
        **{
            name: given[name] if name in given else request.getfixturevalue(name)
            for name in signature(law).parameters
        }
    )


@pytest.mark.parametrize("failpoint", ["sink_delivered", "sink_recorded"])
def test_a_killed_delivery_continues_where_it_ended(
    failpoint: str, table: Table, make: Make, addresses: Addresses
) -> None:
    test_crashes.test_a_killed_delivery_continues_where_it_ended(
        SinkSystem.CASSANDRA, failpoint, table, make, addresses
    )


HISTORIES = st.lists(st.tuples(COMMITS, st.booleans()), min_size=1, max_size=6)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_it_ends_as_the_table(history, tmp_path: Path, addresses: Addresses) -> None:
    place = f"t{os.urandom(6).hex()}"
    table, model = Table(str(tmp_path / place)), {1: "a", 2: "b"}
    table.create(rows(dict(model)))
    entry = sink_of_users(place, SinkSystem.CASSANDRA)
    sink = Delivery(entry, table.location, lambda: addresses, tmp_path / "locks", no_spark)
    for commit, looking in history:
        change(table, model, commit)
        if looking:
            sink.catch_up()
    sink.catch_up()
    assert verify_sink(sink).passed
    sink.close()
    with cassandra_cluster(addresses.cassandra) as cluster:
        found = cluster.connect().execute(f"SELECT id, name FROM serving.{place}")
        assert {one["id"]: one["name"] for one in found} == model

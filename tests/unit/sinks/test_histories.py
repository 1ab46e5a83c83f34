"""Random histories of a real table, delivered at random moments: each sink ends as the table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import psycopg
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_jobs.definitions.vocabulary import SinkSystem
from spark_jobs.sinks.delivery import Delivery
from spark_jobs.sinks.target import Addresses
from tests.unit.sinks.conftest import Table, no_spark, rows, sink_of_users

KEYS = st.integers(0, 5)
# A commit, and the sinks that look at the table after it.
COMMITS = st.one_of(
    st.dictionaries(KEYS, st.sampled_from(["a", "b", ""]), min_size=1),
    KEYS,
    st.just("compact"),
)
SYSTEMS = (SinkSystem.POSTGRES, SinkSystem.REDIS)
HISTORIES = st.lists(st.tuples(COMMITS, st.sets(st.sampled_from(SYSTEMS))), min_size=1, max_size=6)


def change(table: Table, model: dict[int, str], commit: Mapping[int, str] | int | str) -> None:
    """Make one commit, and the same change to the model."""
    match commit:
        case int():
            table.delete(f"id = {commit}")
            model.pop(commit, None)
        case str():
            table.open().optimize.compact()
        case _:
            table.upsert(rows(dict(commit)))
            model.update(commit)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
def test_each_sink_ends_as_the_table(history, tmp_path: Path, addresses: Addresses) -> None:
    place = f"t{os.urandom(6).hex()}"
    table, model = Table(str(tmp_path / place)), {1: "a", 2: "b"}
    table.create(rows(dict(model)))
    locks = tmp_path / "locks"
    sinks = {
        one: Delivery(sink_of_users(place, one), table.location, lambda: addresses, locks, no_spark)
        for one in SYSTEMS
    }
    for commit, looking in history:
        change(table, model, commit)
        for system in looking:
            sinks[system].catch_up()
    for one in sinks.values():
        one.catch_up()
        one.close()

    with psycopg.connect(addresses.postgres) as connection:
        found = connection.execute(f"SELECT id, name FROM serving.{place}".encode()).fetchall()
    assert dict(found) == model
    with redis.Redis.from_url(addresses.redis, decode_responses=True) as client:
        names = {key: client.hget(key, "name") for key in client.keys(f"{place}:*")}
    assert names == {f"{place}:{key}": name for key, name in model.items()}

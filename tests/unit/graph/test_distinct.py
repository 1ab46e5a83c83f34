"""Which aggregates of distinct values without GROUP BY are maintained."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.states import Cutter
from spark_jobs.graph.manifest import MaintenanceStrategy

TYPES = {"silver.a": {"k": "int", "x": "bigint", "f": "double"}}


def groups(query: str) -> list[list[str]]:
    """The keys of each state, as SQL."""
    cutter = Cutter(TYPES)
    cutter.cut(build(query)[0])
    return [[value.sql() for _, value in one.node.keys] for one in cutter.states]


def test_the_values_are_stored_and_their_number() -> None:
    assert groups("SELECT COUNT(DISTINCT a.x) AS n FROM silver.a AS a") == [["x"], []]


def test_values_that_are_alone_are_not_joined() -> None:
    found, _ = maintenance_of("SELECT COUNT(DISTINCT a.x) AS n FROM silver.a AS a", types=TYPES)
    assert not any("join" in one.operator for one in found.operators)


def test_calls_over_the_same_values_share_them() -> None:
    query = "SELECT COUNT(DISTINCT a.x) AS n, SUM(DISTINCT a.x) AS s FROM silver.a AS a"
    assert groups(query) == [["x"], []]


def test_other_calls_are_stored_beside_them() -> None:
    query = "SELECT COUNT(DISTINCT a.x) AS n, COUNT(DISTINCT a.k) AS m, SUM(a.k) AS s FROM {} AS a"
    assert groups(query.format("silver.a")) == [[], ["x"], [], ["k"], []]


def test_values_from_groups_are_counted_when_they_are_read() -> None:
    of_groups = "(SELECT a.k, COUNT(*) AS n FROM silver.a AS a GROUP BY a.k) AS g"
    assert groups(f"SELECT COUNT(DISTINCT g.n) AS n FROM {of_groups}") == [["k"]]


@pytest.mark.parametrize(
    "calls", ["COUNT(DISTINCT a.x) AS n, STDDEV(a.x) AS s", "STDDEV(DISTINCT a.x) AS s"]
)
def test_a_call_without_state_needs_every_row(calls: str) -> None:
    query = f"SELECT {calls} FROM silver.a AS a"
    assert groups(query) == []
    assert maintenance_of(query, types=TYPES)[0].rule is MaintenanceStrategy.FULL


def test_groups_are_computed_again() -> None:
    query = "SELECT a.k, COUNT(DISTINCT a.x) AS n FROM silver.a AS a GROUP BY a.k"
    assert groups(query) == []

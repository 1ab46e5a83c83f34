"""Orders that may leave ties are named, and those that a unique key ends are not."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of

KEYS = {"silver.t": frozenset({"id"})}
T = "FROM silver.t AS t"


def notes(query: str) -> list[str]:
    found, obstacle = maintenance_of(query, keys=KEYS)
    assert obstacle is None
    return [one.note for one in found.operators if one.note is not None]


def window(call: str, over: str) -> str:
    return f"SELECT t.id AS id, {call} OVER (PARTITION BY t.g ORDER BY {over}) AS w {T}"


TOP = "SELECT t.g AS g, COUNT(*) AS n FROM silver.t AS t GROUP BY t.g ORDER BY {} LIMIT 3"


@pytest.mark.parametrize(
    "query",
    [
        window("ROW_NUMBER()", "t.a"),
        window("LAG(t.a)", "t.a DESC"),
        window("FIRST_VALUE(t.a)", "t.b"),
        window("NTH_VALUE(t.a, 2)", "t.b"),
        window("NTILE(4)", "t.id % 3"),
        window("SUM(t.a)", "t.b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        TOP.format("n DESC"),
        window("ROW_NUMBER()", "t.a").replace("silver.t", "silver.keyless"),
    ],
)
def test_an_order_without_a_unique_end_is_named(query: str) -> None:
    (note,) = notes(query)
    assert note.startswith("ORDER BY ")
    assert "may leave ties" in note


@pytest.mark.parametrize(
    "query",
    [
        window("ROW_NUMBER()", "t.a, t.id"),
        window("RANK()", "t.a"),
        window("DENSE_RANK()", "t.a"),
        window("SUM(t.a)", "t.b"),
        window("SUM(t.a)", "t.b, t.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        TOP.format("n DESC, g"),
        f"SELECT t.id AS id {T}",
    ],
)
def test_an_order_that_decides_is_not(query: str) -> None:
    assert notes(query) == []


def test_the_partition_is_part_of_the_key() -> None:
    query = (
        "SELECT s.g AS g, s.h AS h, ROW_NUMBER() OVER (PARTITION BY s.g ORDER BY s.h) AS w "
        "FROM (SELECT t.g AS g, t.h AS h, COUNT(*) AS n FROM silver.t AS t GROUP BY t.g, t.h) AS s"
    )
    assert notes(query) == []

"""Orders that may leave ties are named, and those that a unique key ends are not."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of

KEYS = {"silver.t": frozenset({"id"}), "silver.u": frozenset({"uid"})}
TYPES = {"silver.t": {"id": "bigint", "other": "bigint"}, "silver.u": {"uid": "bigint"}}
T = "FROM silver.t AS t"


def notes(query: str) -> list[str]:
    found, obstacle = maintenance_of(query, keys=KEYS, types=TYPES)
    assert obstacle is None
    return [one.note for one in found.operators if one.note is not None]


def window(call: str, over: str) -> str:
    return f"SELECT t.id AS id, {call} OVER (PARTITION BY t.g ORDER BY {over}) AS w {T}"


OVER_GROUPS = "ROW_NUMBER() OVER (PARTITION BY t.g ORDER BY COUNT(*) DESC, t.b)"
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
        # Rows that only the column beside them tells apart.
        f"SELECT t.a AS a, t.b AS b {T} ORDER BY t.a LIMIT 3",
        # Several rows are made of one of t.
        (
            "SELECT s.x AS x, ROW_NUMBER() OVER (PARTITION BY s.g ORDER BY s.id) AS w "
            f"FROM (SELECT t.id, t.g, EXPLODE(t.xs) AS x {T}) AS s"
        ),
        # Several rows of t are joined with one of u.
        window("ROW_NUMBER()", "u.uid") + " JOIN silver.u AS u ON u.uid = t.other",
        # Of a row of t without one of u, the key of u is NULL.
        window("ROW_NUMBER()", "u.uid") + " LEFT JOIN silver.u AS u ON u.uid = t.id",
    ],
)
def test_an_order_without_a_unique_end_is_named(query: str) -> None:
    (note,) = notes(query)
    assert note.startswith("ORDER BY ")
    assert "may leave ties" in note


@pytest.mark.parametrize(
    ("call", "order"),
    [
        ("MAX_BY(t.a, t.b)", "b"),
        ("MIN_BY(t.a, t.b + 1) FILTER (WHERE t.c)", "b + 1"),
        ("LISTAGG(t.a) WITHIN GROUP (ORDER BY t.b DESC)", "b DESC"),
        ("MAX_BY(t.a, t.id)", None),
        ("MAX_BY(t.b, t.b)", None),
        ("LISTAGG(t.a) WITHIN GROUP (ORDER BY t.b, t.a)", None),
        ("LISTAGG(DISTINCT t.a) WITHIN GROUP (ORDER BY t.a)", None),
    ],
)
def test_an_aggregate_that_takes_one_of_several_rows_is_named(call: str, order: str | None) -> None:
    found = notes(f"SELECT t.g AS g, {call} AS x {T} GROUP BY t.g")
    assert [one.split(" may be the same")[0] for one in found] == ([order] if order else [])


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT t.id AS id, FIRST_VALUE(t.a) OVER (PARTITION BY t.g) AS w {T}",
        "SELECT t.a AS a FROM silver.t AS t LIMIT 3",
    ],
)
def test_rows_in_no_order_are_named(query: str) -> None:
    (note,) = notes(query)
    assert "without ORDER BY" in note


@pytest.mark.parametrize(
    "query",
    [
        window("ROW_NUMBER()", "t.a, t.id"),
        window("RANK()", "t.a"),
        window("DENSE_RANK()", "t.a"),
        window("SUM(t.a)", "t.b"),
        window("SUM(t.a)", "t.b ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
        f"SELECT t.id AS id, SUM(t.a) OVER (PARTITION BY t.g) AS w {T}",
        window("SUM(t.a)", "t.b, t.id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
        TOP.format("n DESC, g"),
        f"SELECT t.id AS id {T}",
        # Rows that come to the top are kept as a multiset, and their key with them.
        f"SELECT t.id AS id, t.a AS a, t.b AS b {T} ORDER BY t.a DESC, t.id LIMIT 3",
        f"SELECT t.a AS a, t.b AS b {T} ORDER BY t.a DESC, t.id LIMIT 3",
        # Tied rows are equal.
        f"SELECT t.a AS a, t.b AS b {T} ORDER BY a DESC, b LIMIT 3",
        window("LAG(t.a)", "t.a, t.id") + " JOIN silver.u AS u ON u.uid = t.other",
        window("LAG(t.a)", "t.a, t.id") + " LEFT JOIN silver.u AS u ON u.uid = t.other",
        window("LAG(t.a)", "t.a, t.id") + " JOIN silver.u AS u ON u.uid = t.id",
        window("LAG(t.a)", "t.a, u.uid") + " JOIN silver.u AS u ON u.uid = t.id",
        # The key of all rows is that of some of them.
        window("LAG(t.a)", "t.a, t.id") + " WHERE t.b > 1",
        # A term without a direction, over groups.
        f"SELECT t.g AS g, t.b AS b, {OVER_GROUPS} AS w {T} GROUP BY t.g, t.b",
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

"""Subqueries whose groups may be equal to one value of another type have no rule."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.reasons import Obstacle
from tests.properties.maintenance import canonical
from tests.properties.tables import TYPES

SUM = "SELECT a.k, (SELECT SUM(b.x) FROM silver.b AS b WHERE {}) AS s FROM silver.a AS a"
OR = "SELECT c.y FROM silver.c AS c WHERE c.y = 1 OR {}"
SPLIT = (
    SUM.format("b.t = a.k"),
    SUM.format("a.k = b.t AND b.x = a.x"),
    SUM.format("CONCAT(b.t, '') = a.k + 1"),
    OR.format("c.j IN (SELECT b.t FROM silver.b AS b)"),
    OR.format("c.f IN (SELECT b.m FROM silver.b AS b)"),
    OR.format("EXISTS (SELECT 1 FROM silver.b AS b WHERE b.t = c.d)"),
    (
        "SELECT a.k FROM silver.a AS a WHERE EXISTS "
        "(SELECT 1 FROM silver.b AS b WHERE b.t = a.k GROUP BY b.x HAVING COUNT(*) > 1)"
    ),
    (
        "SELECT a.k, (SELECT b.x FROM silver.b AS b WHERE a.k = b.t ORDER BY b.z LIMIT 1) AS v "
        "FROM silver.a AS a"
    ),
)
WHOLE = (
    SUM.format("b.k = a.t"),
    SUM.format("CAST(b.t AS INT) = a.k"),
    SUM.format("b.t = a.t"),
    SUM.format("b.m = a.k"),
    OR.format("c.f IN (SELECT b.x FROM silver.b AS b)"),
    "SELECT c.y FROM silver.c AS c WHERE c.j IN (SELECT b.t FROM silver.b AS b)",
    (
        "SELECT a.k, s.n FROM silver.a AS a LEFT JOIN "
        "(SELECT b.t, COUNT(*) AS n FROM silver.b AS b GROUP BY b.t) AS s ON s.t = a.k"
    ),
)


@pytest.mark.parametrize("sql", SPLIT)
def test_groups_that_may_be_equal_to_one_value_have_no_rule(sql: str) -> None:
    _, error = maintenance_of(canonical(sql), types=TYPES)
    assert error is not None
    assert error.obstacle is Obstacle.UNSUPPORTED_SUBQUERY
    assert "cast them" in error.text


@pytest.mark.parametrize("sql", WHOLE)
def test_other_groups_have_a_rule(sql: str) -> None:
    _, error = maintenance_of(canonical(sql), types=TYPES)
    assert error is None

"""Which rule a view gets, and what stands in the way."""

from __future__ import annotations

import pytest

from spark_jobs.graph.maintenance.algebra import Aggregate, children
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.query import build
from tests.properties.maintenance import canonical

TYPES = {"silver.a": {"k": "int", "x": "decimal(9,2)", "y": "double"}}


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("SELECT a.k FROM silver.a AS a WHERE a.x > 1", "changed_rows"),
        ("SELECT a.k, MAX(a.x) AS m FROM silver.a AS a GROUP BY a.k", "affected_groups"),
        ("SELECT a.k, SUM(a.x * (1 - a.x)) AS s FROM silver.a AS a GROUP BY a.k", "kept_groups"),
        ("SELECT COUNT(*) AS n FROM silver.a AS a", "kept_groups"),
        ("SELECT a.k FROM silver.a AS a ORDER BY a.k LIMIT 3", "kept_groups"),
        # In another order of adding a DOUBLE may come out otherwise.
        ("SELECT a.k, SUM(a.y) AS s FROM silver.a AS a GROUP BY a.k", "affected_groups"),
        (
            (
                "SELECT s.k, SUM(s.v) AS v FROM (SELECT a.k, a.x * a.x AS v FROM silver.a AS a) s "
                "GROUP BY s.k HAVING SUM(s.v) > (SELECT SUM(b.x) FROM silver.a AS b)"
            ),
            "kept_groups",
        ),
    ],
)
def test_the_rule_follows_from_the_sql(query: str, rule: str) -> None:
    found, error = maintenance_of(canonical(query), types=TYPES)
    assert error is None
    assert found.rule == rule


@pytest.mark.parametrize(
    ("query", "obstacle"),
    [
        ("SELECT MAX(a.x) AS m FROM silver.a AS a", "DEPENDS_ON_EVERY_ROW"),
        ("SELECT a.k, SUM(a.x) OVER () AS s FROM silver.a AS a", "DEPENDS_ON_EVERY_ROW"),
        (
            "SELECT a.k, COLLECT_LIST(a.x) AS l FROM silver.a AS a GROUP BY a.k",
            "ORDER_DEPENDENT",
        ),
        # Operators carry the columns that are named: HASH(*) would be one of fewer columns.
        ("SELECT a.k, HASH(*) AS h FROM silver.a AS a", "UNRESOLVED_COLUMN"),
        ("SELECT a.k, STRUCT(a.*) AS s FROM silver.a AS a", "UNRESOLVED_COLUMN"),
        ("SELECT COUNT(a.*) AS n FROM silver.a AS a", "UNRESOLVED_COLUMN"),
        ("SELECT a.k, CURRENT_DATE AS d FROM silver.a AS a", "CLOCK_OUTSIDE_WHERE"),
        (
            (
                "SELECT a.k FROM silver.a AS a WHERE a.x > (SELECT MAX(b.x) FROM silver.a AS b "
                "WHERE b.k < a.k)"
            ),
            "UNSUPPORTED_SUBQUERY",
        ),
    ],
)
def test_an_obstacle_is_named(query: str, obstacle: str) -> None:
    found, error = maintenance_of(canonical(query), types=TYPES)
    assert error is not None
    assert found.rule == "full"
    assert found.obstacle == obstacle
    assert found.suggestion


def test_a_session_is_no_key_that_a_row_has_by_itself() -> None:
    session = "SESSION_WINDOW(a.s, '5 minutes')"
    root, _ = build(f"SELECT a.k, COUNT(*) AS n FROM silver.b AS a GROUP BY a.k, {session}")
    while not isinstance(root, Aggregate):
        (root,) = children(root)
    assert (len(root.keys), [value.name for _, value in root.row_keys]) == (2, ["k"])

"""Which columns of a change tell 0.0 from -0.0, so that a text of them has the sign."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance.delta import Step
from spark_jobs.graph.maintenance.derived import derived_program
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.reasons import Obstacle
from tests.properties.maintenance import InDuckDb, canonical

TYPES = {
    "silver.a": {
        "k": "int",
        "x": "decimal(9,2)",
        "y": "double",
        "o": "struct<z:float>",
        "t": "timestamp",
    },
    "silver.b": {"k": "int"},
}


@pytest.mark.parametrize(
    ("query", "signed"),
    [
        ("SELECT CAST(a.y AS STRING) AS y FROM {a} AS a JOIN {b} AS b ON a.k = b.k", ["MAX(y)"]),
        ("SELECT a.k, a.x, a.t FROM {a} AS a JOIN {b} AS b ON a.k = b.k", []),
        ("SELECT TO_JSON(a.o) AS o FROM {a} AS a JOIN {b} AS b ON a.k = b.k", ["ANY_VALUE(o)"]),
        ("SELECT CAST(c.r AS STRING) AS r FROM {rounded} AS c JOIN {b} AS b ON c.k = b.k", ["r"]),
        ("SELECT c.r FROM {truncated} AS c JOIN {b} AS b ON c.k = b.k", []),
        *(
            (
                (
                    "SELECT CAST(c.r AS STRING) AS r FROM (SELECT a.k, "
                    f"{value} AS r FROM {{a}} AS a) AS c JOIN {{b}} AS b ON c.k = b.k"
                ),
                signed,
            )
            for value, signed in (
                ("TRY_DIVIDE(0, a.k)", ["r"]),
                ("TRY_AVG(a.k) OVER (PARTITION BY a.k)", ["r"]),
                ("FROM_JSON(CAST(a.k AS STRING), 'x DOUBLE').x", ["r"]),
                ("ROUND(CAST(a.k AS DOUBLE), 1)", ["r"]),
                ("ROUND(CAST(a.k AS STRING))", ["r"]),
                ("CAST(a.k AS STRING) * 2", ["r"]),
                ("ROUND(a.x, 1) / 2", ["r"]),
                ("COALESCE(ROUND(a.x, 1) + ABS(a.k), 0)", []),
                ("a.t + INTERVAL 1 DAY", []),
                ("SPLIT_PART(CAST(a.k AS STRING), ',', 1)", []),
            )
        ),
        (
            "SELECT b.k, CAST(a.y AS STRING) AS y FROM {b} AS b LEFT JOIN {a} AS a ON a.k = b.k",
            ["y"],
        ),
        ("SELECT a.k, MIN(CAST(a.y AS STRING)) AS y FROM {a} AS a GROUP BY a.k", ["y"]),
    ],
)
def test_zeros_are_told_apart_below_what_may_read_their_sign(query: str, signed: list[str]) -> None:
    text = query.format(
        a="silver.a",
        b="silver.b",
        rounded="(SELECT a.k, ROUND(a.y, 1) AS r FROM silver.a AS a)",
        truncated="(SELECT a.k, DATE_TRUNC('DAY', a.t) AS r FROM silver.a AS a)",
    )
    tables = InDuckDb(frozenset({"silver.a"}))
    program = derived_program(
        canonical(text), tables, {}, types=TYPES, last=DeleteInsert(), prefix=""
    )
    changes = [to_sql(one.query) for one in program.steps if isinstance(one, Step)]
    found = [one for one in changes if "AS STRING)" in one.rpartition("GROUP BY")[2]]
    assert bool(found) == bool(signed)
    assert all(one in found[0] for one in signed)


@pytest.mark.parametrize(
    ("condition", "obstacle"),
    [
        ("a.x NOT IN (SELECT b.x FROM silver.b AS b)", Obstacle.UNSUPPORTED_SUBQUERY),
        ("a.k NOT IN (SELECT b.k FROM silver.b AS b)", None),
        ("NOT EXISTS (SELECT 1 FROM silver.b AS b WHERE b.x = a.x)", None),
        ("NOT EXISTS (SELECT 1 FROM silver.b AS b WHERE b.x = a.x OR b.k = a.k)", None),
    ],
)
def test_only_not_in_of_floats_has_no_rule(condition: str, obstacle: Obstacle | None) -> None:
    columns = {"k": "int", "x": "double"}
    found, _ = maintenance_of(
        canonical(f"SELECT a.k FROM silver.a AS a WHERE {condition}"),
        types={"silver.a": columns, "silver.b": columns},
    )
    assert found.obstacle == obstacle

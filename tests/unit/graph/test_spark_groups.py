"""The canonical query refers to groups as Spark takes it."""

from __future__ import annotations

import pytest

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.maintained_query import maintained_query
from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

COLUMNS = {"a": "int", "b": "int", "c": "bigint", "day": "date"}
T = "FROM silver.t AS t"
# What is written behind SELECT, and what is run.
CHANGED = {
    f"a {T} GROUP BY ROLLUP (a) HAVING GROUPING(a) = 0": (
        f"t.a {T} GROUP BY ROLLUP (t.a) HAVING GROUPING(t.a) = 0"
    ),
    f"A {T} GROUP BY ROLLUP (a) ORDER BY GROUPING(a)": (
        f"t.A {T} GROUP BY ROLLUP (t.a) ORDER BY GROUPING(t.a)"
    ),
    f"a AS x, GROUPING(a) AS g {T} GROUP BY CUBE (a) HAVING g = 0 AND x > 1": (
        f"t.a AS x, GROUPING(t.a) AS g {T} GROUP BY CUBE (t.a) HAVING g = 0 AND x > 1"
    ),
    f"a, SUM(b) AS s {T} GROUP BY ROLLUP (a) HAVING s > 2 AND a > 1": (
        f"t.a AS a, SUM(t.b) AS s {T} GROUP BY ROLLUP (t.a) HAVING SUM(t.b) > 2 AND a > 1"
    ),
    f"a {T} GROUP BY ROLLUP (a) HAVING GROUPING_ID() = 0 AND a > 1": (
        f"t.a AS a {T} GROUP BY ROLLUP (t.a) HAVING GROUPING_ID() = 0 AND a > 1"
    ),
    f"a, RANK() OVER (PARTITION BY b ORDER BY SUM(c)) AS r {T} GROUP BY a, b QUALIFY r = 1": (
        "t.a AS a, RANK() OVER (PARTITION BY t.b ORDER BY SUM(t.c)) AS r "
        f"{T} GROUP BY t.a, t.b QUALIFY r = 1"
    ),
    f"a, SUM(c) AS s {T} GROUP BY a, b QUALIFY RANK() OVER (PARTITION BY b ORDER BY s) = 1": (
        f"t.a AS a, SUM(t.c) AS s {T} GROUP BY t.a, t.b "
        "QUALIFY RANK() OVER (PARTITION BY t.b ORDER BY s) = 1"
    ),
    f"YEAR(day) AS y, SUM(c) AS s {T} GROUP BY 1 QUALIFY RANK() OVER (ORDER BY y) < 3 AND s > 1": (
        f"YEAR(t.day) AS y, SUM(t.c) AS s {T} GROUP BY YEAR(t.day) "
        "QUALIFY RANK() OVER (ORDER BY y) < 3 AND s > 1"
    ),
    f"YEAR(day) AS day, RANK() OVER (ORDER BY COUNT(*)) AS r {T} GROUP BY 1 QUALIFY day > 1": (
        "YEAR(t.day) AS day, RANK() OVER (ORDER BY COUNT(*)) AS r "
        f"{T} GROUP BY YEAR(t.day) QUALIFY day > 1"
    ),
    f"DATE_SUB(day, a) AS d {T} GROUP BY day - a": f"t.day - t.a AS d {T} GROUP BY t.day - t.a",
    f"day - 1 AS d {T} GROUP BY DATE_SUB(day, 1)": (
        f"DATE_ADD(t.day, 1 * -1) AS d {T} GROUP BY DATE_ADD(t.day, 1 * -1)"
    ),
}
# Spark takes these as they are, and another text would be another fingerprint.
KEPT = {
    f"GROUPING(a) AS g {T} GROUP BY ROLLUP (a) ORDER BY GROUPING(a)": (
        f"GROUPING(t.a) AS g {T} GROUP BY ROLLUP (t.a) ORDER BY g"
    ),
    f"a AS x {T} GROUP BY ROLLUP (a) HAVING a > 1": (
        f"t.a AS x {T} GROUP BY ROLLUP (t.a) HAVING t.a > 1"
    ),
    f"a AS x, SUM(c) AS s {T} GROUP BY a HAVING s > 1 AND x > 1": (
        f"t.a AS x, SUM(t.c) AS s {T} GROUP BY t.a HAVING SUM(t.c) > 1 AND t.a > 1"
    ),
    f"a, RANK() OVER (PARTITION BY a ORDER BY b) AS r {T} GROUP BY a, b QUALIFY r = 1": (
        "t.a AS a, RANK() OVER (PARTITION BY t.a ORDER BY t.b) AS r "
        f"{T} GROUP BY t.a, t.b QUALIFY RANK() OVER (PARTITION BY t.a ORDER BY t.b) = 1"
    ),
    f"YEAR(day) AS y {T} GROUP BY day QUALIFY RANK() OVER (ORDER BY y) < 3": (
        f"YEAR(t.day) AS y {T} GROUP BY t.day QUALIFY RANK() OVER (ORDER BY YEAR(t.day)) < 3"
    ),
    f"MAX(DATE_SUB(day, 1)) AS d, day - 1 AS p {T} GROUP BY day - 1, day": (
        f"MAX(DATE_ADD(t.day, 1 * -1)) AS d, t.day - 1 AS p {T} GROUP BY t.day - 1, t.day"
    ),
    f"DATE_SUB(day, 1) AS d, day - 1 AS p {T} GROUP BY day": (
        f"DATE_ADD(t.day, 1 * -1) AS d, t.day - 1 AS p {T} GROUP BY t.day"
    ),
}


@pytest.mark.parametrize("written", CHANGED | KEPT)
def test_spark_takes_the_groups_of_a_canonical_query(written: str):
    sql = f"SELECT {written}"
    tables, text = {TableName.parse("silver.t"): COLUMNS}, SqlText("view.sql", sql)
    tree = parse_select(text)
    resolved = resolve(tree, tables, text, "view")
    assert resolved.problems == ()
    query = to_sql(canonical_query(tree, resolved.tree))
    assert query == f"SELECT {(CHANGED | KEPT)[written]}"
    found, obstacle = maintenance_of(query, types={"silver.t": COLUMNS})
    assert obstacle is None, found


def test_spark_takes_the_tie_breakers_of_groups_in_qualify():
    sql = f"SELECT YEAR(day) AS y, a {T} GROUP BY 1, 2 QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1"
    tables, text = {TableName.parse("silver.t"): COLUMNS}, SqlText("view.sql", sql)
    tree = parse_select(text)
    canonical = canonical_query(tree, resolve(tree, tables, text, "view").tree)
    query = maintained_query(canonical, types={"silver.t": COLUMNS})
    assert query.text.endswith("QUALIFY ROW_NUMBER() OVER (ORDER BY t.a, y) = 1")

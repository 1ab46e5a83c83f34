"""Which PIVOT and UNPIVOT are replaced; on Spark, others test that the rows are the same."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import Resolved, resolve
from spark_jobs.names import TableName

COLUMNS = {"k": "int", "x": "int", "y": "int", "t": "string", "m": "decimal(8,2)", "other": ""}


def resolved(sql: str) -> Resolved:
    return resolve(parse(sql), {TableName.parse("silver.a"): COLUMNS}, SqlText("q", sql), "q")


REPLACED = {
    (
        "SELECT p.k, p.one FROM (SELECT k, x, y FROM silver.a) PIVOT (SUM(x) FOR y IN (1 AS one)) "
        "AS p"
    ): (
        "SELECT p.k AS k, p.one AS one FROM (SELECT _0.k AS k, SUM(_0.x) FILTER(WHERE _0.y = 1) "
        "AS `one` FROM (SELECT a.k AS k, a.x AS x, a.y AS y FROM silver.a AS a) AS _0 "
        "GROUP BY _0.k) AS p"
    ),
    ("SELECT k, v FROM (SELECT k, x, y FROM silver.a) UNPIVOT INCLUDE NULLS (v FOR n IN (x, y))"): (
        "SELECT unpivoted.k AS k, unpivoted.v AS v FROM (SELECT unpivoted.k AS k, "
        "unpivoted_labels.n AS n, CASE unpivoted_labels.n WHEN 'x' THEN unpivoted.x WHEN 'y' "
        "THEN unpivoted.y END AS v FROM (SELECT a.k AS k, a.x AS x, a.y AS y FROM silver.a AS "
        "a) AS unpivoted CROSS JOIN VALUES ('x'), ('y') AS unpivoted_labels(n)) AS unpivoted"
    ),
}


@pytest.mark.parametrize("sql", REPLACED)
def test_it_is_replaced(sql: str) -> None:
    found = resolved(sql)
    assert found.problems == ()
    assert to_sql(found.tree) == REPLACED[sql]


def test_it_is_replaced_in_common_table_expressions_that_read_each_other() -> None:
    found = resolved(
        "WITH s AS (WITH r AS (SELECT k, x, y FROM silver.a) SELECT k, v FROM r "
        "UNPIVOT (v FOR n IN (x, y))), p(k, a, b) AS (SELECT * FROM s PIVOT (SUM(v) FOR k IN "
        "(1, 2, 3))), u AS (SELECT k, v FROM s) SELECT p.b, u.`1` FROM (SELECT k, v FROM s) AS s "
        "PIVOT (MAX(v) FOR k IN (1)) AS u CROSS JOIN p"
    )
    text = to_sql(found.tree)
    assert text.count("FILTER(WHERE") == 1 + 3
    # Of the query of WITH within a query of WITH, the columns are not looked up.
    assert text.count("PIVOT") == 1


@pytest.mark.parametrize(
    "relation",
    [
        "silver.a PIVOT (SUM(x), MAX(x) FOR y IN (1))",
        "silver.a PIVOT (SUM(x) FOR y IN ('1' AS one))",
        "silver.a PIVOT (SUM(x) FOR y IN (1.0))",
        "silver.a PIVOT (SUM(x) FOR y IN (01))",
        "silver.a PIVOT (SUM(x) FOR y IN (-1))",
        "silver.a PIVOT (SUM(x) FOR y IN (NULL))",
        "silver.a PIVOT (SUM(x) FOR t IN (1))",
        "silver.a PIVOT (SUM(x) FOR m IN (1))",
        "silver.a PIVOT (SUM(x) FOR other IN (1))",
        "silver.a PIVOT (SUM(x) FOR nothing IN (1))",
        "silver.a PIVOT (SUM(nothing) FOR y IN (1))",
        "silver.a PIVOT (FIRST(x) FOR y IN (1))",
        "silver.a PIVOT (COUNT(x) AS n, MAX(x + 1) AS v FOR y IN (1))",
        "silver.a PIVOT (COUNT(x) AS n, MAX(other) AS v FOR y IN (1))",
        "silver.a PIVOT (SUM(x) FOR y IN (1 AS k))",
        "silver.a PIVOT (SUM(x) FOR (y, t) IN ((1, 'a')))",
        "silver.a UNPIVOT (v FOR n IN (x, m))",
        "silver.a UNPIVOT (v FOR n IN (x, other))",
        "silver.a UNPIVOT (v FOR n IN (x AS a, y AS a))",
        "silver.a UNPIVOT (v FOR k IN (x, y))",
        "silver.a UNPIVOT ((v, w) FOR n IN ((x, t), (y, t)))",
        "silver.b PIVOT (SUM(x) FOR y IN (1))",
        "silver.a AS a JOIN silver.a AS b ON a.k = b.k PIVOT (SUM(m) FOR t IN ('a'))",
    ],
)
def test_what_only_spark_can_name_or_convert_stays(relation: str) -> None:
    assert "PIVOT" in to_sql(resolved(f"SELECT 1 AS one FROM {relation}").tree)

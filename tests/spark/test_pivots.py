"""PIVOT and UNPIVOT are rewritten to what Spark makes of them."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.resolve import resolve
from spark_jobs.graph.sql import pin_tables
from spark_jobs.names import TableName

TYPES = {
    "k": "int",
    "y": "int",
    "x": "int",
    "t": "string",
    "m": "decimal(8,2)",
    "f": "double",
    "d": "date",
    "o": "boolean",
    "big": "bigint",
}
ROWS = (
    "(1, 1, 10, 'a', 1.50, 0.5D, DATE '2026-01-01', TRUE, 5L)",
    "(1, 2, 20, 'b', 2.50, -1D, DATE '2026-01-02', FALSE, 6L)",
    "(1, 2, NULL, 'b', 1.00, 2D, NULL, NULL, NULL)",
    "(2, 1, NULL, 'A', NULL, NULL, NULL, NULL, NULL)",
    "(2, 1, 4, 'a', 3.00, 1D, DATE '2026-01-01', FALSE, 7L)",
    "(NULL, 1, 3, 'a', 1.00, 1D, DATE '2026-01-03', TRUE, 8L)",
    "(3, NULL, 1, NULL, 1.00, 1D, DATE '2026-01-03', TRUE, 8L)",
    "(4, 9, 1, 'z', 1.00, 1D, DATE '2026-01-03', TRUE, 8L)",
)
PIVOTS = {
    "sum": "k, x, y FROM {t}) PIVOT (SUM(x) FOR y IN (1, 2, 7))",
    "count, NULL of no rows": "k, x, y FROM {t}) PIVOT (COUNT(x) FOR y IN (1, 2, 7))",
    "rows": "k, y FROM {t}) PIVOT (COUNT(*) FOR y IN (1, 2, 7))",
    "distinct values": "k, x, y FROM {t}) PIVOT (COUNT(DISTINCT x) FOR y IN (1 AS one, 7))",
    "two by name": (
        "k, x, y FROM {t}) PIVOT (COUNT(x) AS n, SUM(x) AS `total x` FOR y IN (1 AS One, 7))"
    ),
    "count beside a text, 0 of no rows": (
        "k, x, t, y FROM {t}) PIVOT (COUNT(x) AS n, MAX(t) AS t FOR y IN (1, 7))"
    ),
    "count beside a date": (
        "k, x, d, y FROM {t}) PIVOT (COUNT(x) AS n, MIN(d) AS d FOR y IN (1, 7))"
    ),
    "count beside numbers": (
        "k, x, m, f, o, y, big FROM {t}) PIVOT (COUNT(x) AS n, AVG(m) AS m, SUM(f) AS f, "
        "MAX(o) AS o, MAX(big) AS big FOR y IN (1, 2, 7))"
    ),
    "count beside small numbers": (
        "k, x, y, CAST(k AS TINYINT) AS a, CAST(k AS SMALLINT) AS b, CAST(k AS FLOAT) AS c "
        "FROM {t}) PIVOT (COUNT(x) AS n, MIN(a) AS a, MIN(b) AS b, MIN(c) AS c FOR y IN (1, 7))"
    ),
    "count beside a time": (
        "k, x, y, CAST(d AS TIMESTAMP) AS a FROM {t}) "
        "PIVOT (COUNT(x) AS n, MIN(a) AS a FOR y IN (1, 7))"
    ),
    "texts": "k, t, x FROM {t}) PIVOT (AVG(x) FOR t IN ('a', 'B', 'b c', 'z' AS zed))",
    "two columns": (
        "k, t, x, y FROM {t}) PIVOT (COUNT(x) FOR (t, y) IN (('a', 1) AS a1, ('b', 7) AS b7))"
    ),
    "of expressions": "k, x, y, m FROM {t}) PIVOT (MAX(x * 2 + k) FOR y IN (1, 2))",
    "no other columns": "x, y FROM {t}) PIVOT (COUNT(x) FOR y IN (1, 7))",
    "no rows": "k, x, y FROM {t} WHERE k > 9) PIVOT (COUNT(x) FOR y IN (1, 7))",
    "no rows and no other columns": "x, y FROM {t} WHERE k > 9) PIVOT (COUNT(x) FOR y IN (1, 7))",
    "large numbers": "k, x, big FROM {t}) PIVOT (SUM(x) FOR big IN (5, 8 AS eight))",
    "values": "k, x, y FROM {t}) UNPIVOT (v FOR n IN (x, y))",
    "values with NULLs": "k, x, y FROM {t}) UNPIVOT INCLUDE NULLS (v FOR n IN (x AS `The X`, Y))",
    "values named as a column": "k, x, y FROM {t}) UNPIVOT EXCLUDE NULLS (y FOR x IN (x, y))",
    "pairs": "k, x, y, t FROM {t}) UNPIVOT ((v, w) FOR n IN ((x, y), (Y, X) AS `y x`))",
    "pairs with NULLs": (
        "k, x, y, t, m FROM {t}) UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((x, t), (y, t)))"
    ),
}


@pytest.mark.parametrize("name", PIVOTS)
def test_what_replaces_a_pivot_has_its_columns_and_rows(spark: SparkSession, name: str) -> None:
    sql = f"SELECT * FROM (SELECT {PIVOTS[name].format(t='silver.t')}"
    source = SqlText("query", sql)
    resolved = resolve(parse(sql), {TableName.parse("silver.t"): TYPES}, source, "query")
    assert resolved.problems == ()
    made = to_sql(resolved.tree)
    assert "PIVOT" not in made
    spark.sql(
        f"SELECT * FROM VALUES {', '.join(ROWS)} AS t ({', '.join(TYPES)})"
    ).createOrReplaceTempView("pivoted")
    written, found = (spark.sql(pin_tables(one, {"silver.t": "pivoted"})) for one in (sql, made))
    assert [one.lower() for one in written.columns] == found.columns
    assert [kind for _, kind in written.dtypes] == [kind for _, kind in found.dtypes]
    assert Counter(map(tuple, written.collect())) == Counter(map(tuple, found.collect()))

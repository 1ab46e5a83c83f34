"""QUALIFY and HAVING find the outputs that Spark finds."""

from __future__ import annotations

import pytest

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

TABLES = {"t": {"a": "int", "b": "int", "s": "string", "day": "date"}, "u": {"a": "int"}}
RANK = "RANK() OVER (ORDER BY b) AS r"
JOINED = "FROM silver.t AS t JOIN silver.u AS u"
# What is written, and the condition of QUALIFY that runs.
FOUND = {
    f"-a AS a, {RANK} FROM silver.t QUALIFY a < 3": "-t.a < 3",
    f"-a AS A, {RANK} FROM silver.t AS t QUALIFY a < 3 AND t.a > 1": "-t.a < 3 AND t.a > 1",
    f"a AS b, b AS a, {RANK.replace('b', 'day')} FROM silver.t QUALIFY a < 3": "t.b < 3",
    "a, RANK() OVER (ORDER BY day) AS b FROM silver.t QUALIFY b = 1": (
        "RANK() OVER (ORDER BY t.day) = 1"
    ),
    f"'k' AS s, {RANK} FROM silver.t QUALIFY RANK() OVER (PARTITION BY s ORDER BY a) = 1": (
        "RANK() OVER (PARTITION BY 'k' ORDER BY t.a) = 1"
    ),
    "MAX(b) AS b, RANK() OVER (ORDER BY a) AS r FROM silver.t GROUP BY a QUALIFY b > 2": "b > 2",
    f"t.a, {RANK} {JOINED} ON t.a = u.a QUALIFY a > 1": "t.a > 1",
    f"-a AS a, {RANK} {JOINED} USING (a) QUALIFY a > 1": "-t.a > 1",
    # Without a window in the outputs, columns come first.
    "'k' AS s FROM silver.t QUALIFY RANK() OVER (PARTITION BY s ORDER BY a) = 1": (
        "RANK() OVER (PARTITION BY t.s ORDER BY t.a) = 1"
    ),
}
SUMS = "FROM silver.t GROUP BY ROLLUP (a, b)"
# What is written, and the condition of HAVING that runs.
HAVING = {
    f"a AS b, b AS a, SUM(a) AS s {SUMS} HAVING SUM(a) > 2 AND a > 1": "SUM(t.a) > 2 AND a > 1",
    f"a AS b, b AS a, SUM(a) AS s {SUMS} HAVING s > 2 AND a > 1": "SUM(t.a) > 2 AND a > 1",
    f"a AS b, b AS z {SUMS} HAVING MAX(a) > 2 AND b > 1": "MAX(t.a) > 2 AND b > 1",
    f"-a AS a {SUMS} HAVING COUNT(*) > 2 AND -a > 1": "COUNT(*) > 2 AND -a > 1",
    f"a AS b, -b AS a, GROUPING(a) AS g {SUMS} HAVING g = 0 AND a < 1": "g = 0 AND a < 1",
    f"a AS b, b AS a {SUMS} HAVING ABS(1) > 0 AND a > 1": "ABS(1) > 0 AND a > 1",
    f"a AS b, b AS a {SUMS} HAVING a BETWEEN 2 AND 3": "a BETWEEN 2 AND 3",
    f"UPPER(s) AS p {SUMS.replace('b', 's')} HAVING p > 'A' AND 1 < 2": "p > 'A' AND 1 < 2",
    f"a, -b AS c {SUMS} HAVING a > 1.5 OR c > 1": "a > 1.5 OR c > 1",
    # Spark finds columns first without a call, or without sets of groups.
    f"a AS b, b AS a {SUMS} HAVING a > 1": "t.a > 1",
    f"a AS b, -b AS a, 2 * a AS c {SUMS} HAVING c > 2 AND a > 1": "(2 * t.a) > 2 AND t.a > 1",
    "a AS b, b AS a FROM silver.t GROUP BY a, b HAVING SUM(a) > 2 AND a > 1": (
        "SUM(t.a) > 2 AND t.a > 1"
    ),
}
# With the name that Spark finds twice, in the second line.
AMBIGUOUS = {
    "LAG(b) OVER (ORDER BY a) AS b FROM silver.t\nQUALIFY b = 2": 9,
    "a AS a, RANK() OVER (ORDER BY a) AS r FROM silver.t\nQUALIFY r < 3 AND a > 1": 19,
    "-b AS b, SUM(SUM(a)) OVER (PARTITION BY b) AS q FROM silver.t GROUP BY b\nQUALIFY b < 3": 9,
}


def resolved(written: str):
    sql = f"SELECT {written}"
    tables = {TableName.parse(f"silver.{name}"): columns for name, columns in TABLES.items()}
    text = SqlText("view.sql", sql)
    tree = parse_select(text)
    return tree, resolve(tree, tables, text, "view")


@pytest.mark.parametrize("written", FOUND)
def test_qualify_finds_outputs_before_columns_beside_a_window(written: str):
    tree, found = resolved(written)
    assert found.problems == ()
    query = to_sql(canonical_query(tree, found.tree))
    assert query.partition(" QUALIFY ")[2] == FOUND[written]


@pytest.mark.parametrize("written", HAVING)
def test_having_finds_outputs_before_columns_beside_an_aggregate_of_sets(written: str):
    tree, found = resolved(written)
    assert found.problems == ()
    query = to_sql(canonical_query(tree, found.tree))
    assert query.partition(" HAVING ")[2] == HAVING[written]


@pytest.mark.parametrize("written", AMBIGUOUS)
def test_an_output_beside_a_window_of_its_column_is_ambiguous(written: str):
    _, found = resolved(written)
    (problem,) = found.problems
    assert problem.condition == "MISPLACED_ALIAS"
    assert (problem.location.line, problem.location.column) == (2, AMBIGUOUS[written])

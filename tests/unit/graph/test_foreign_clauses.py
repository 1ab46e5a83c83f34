"""Clauses of other databases are refused where they stand, and all of Spark's are read."""

from __future__ import annotations

import pytest

from spark_jobs.graph.errors import NotOneSelectError
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.syntax_errors import (
    ForeignClauseError,
    PipeSyntaxError,
    UnboundParameterError,
)

FOREIGN = {
    "SELECT a FROM t FOR UPDATE": "FOR UPDATE",
    "SELECT a INTO x FROM t": "INTO",
    "SELECT DISTINCT ON (a) a, b FROM t": "DISTINCT ON",
    "SELECT a FROM t CONNECT BY PRIOR a = b": "CONNECT",
    "SELECT a FROM t WITH (NOLOCK)": "table hints",
    "SELECT a FROM t AT (TIMESTAMP => '1')": "WHEN",
    "SELECT a FROM t GROUP BY a WITH TOTALS": "WITH TOTALS",
    "SELECT a FROM t ORDER BY a LIMIT 10 PERCENT": "PERCENT",
    "SELECT a FROM t ORDER BY a LIMIT 3 WITH TIES": "PERCENT or WITH TIES",
    "SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS ONLY": "FETCH",
    "SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS WITH TIES": "FETCH",
    "SELECT a FROM t ORDER BY a NULLS FIRST WITH FILL": "WITH FILL",
    "SELECT a FROM t ASOF JOIN u ON a = b": "ASOF JOIN",
    "SELECT a FROM t RIGHT SEMI JOIN u ON a = b": "RIGHT SEMI JOIN",
    "SELECT a FROM t RIGHT ANTI JOIN u ON a = b": "RIGHT ANTI JOIN",
    "SELECT a FROM t NATURAL SEMI JOIN u": "NATURAL SEMI JOIN",
    "SELECT a FROM t NATURAL LEFT ANTI JOIN u": "NATURAL LEFT ANTI JOIN",
    "SELECT a FROM t STRAIGHT_JOIN u ON a = b": "STRAIGHT JOIN",
    "SELECT a FROM t CROSS APPLY f(a) AS x": "APPLY",
    "SELECT a FROM t UNION CORRESPONDING SELECT a FROM u": "BY NAME or CORRESPONDING",
    "SELECT a FROM t UNION ALL BY NAME SELECT a FROM u": "BY NAME or CORRESPONDING",
    "WITH x AS MATERIALIZED (SELECT 1 AS a) SELECT a FROM x": "MATERIALIZED",
    "SELECT a FROM (SELECT b AS a FROM t FOR UPDATE) AS s": "FOR UPDATE",
    "SELECT SUM(a) OVER (ORDER BY b GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t": (
        "GROUPS"
    ),
    "SELECT SUM(a) OVER (w ROWS 1 PRECEDING) AS s FROM t WINDOW w AS (ORDER BY a)": "window that",
    "SELECT a FROM t WHERE a BETWEEN SYMMETRIC 5 AND 1": "BETWEEN SYMMETRIC",
    "SELECT at + INTERVAL a DAY AS b FROM t": "INTERVAL of an expression",
    "SELECT a FROM t LATERAL VIEW EXPLODE(b)": "LATERAL VIEW without a name",
    "SELECT a FROM t LATERAL VIEW EXPLODE(b) x AS c JOIN u ON u.a = t.a": "JOIN behind LATERAL",
    "SELECT a FROM t WHERE a NOT IN ()": "IN without a value",
}
SPARKS = (
    "SELECT SUM(a) OVER (w) AS s, INTERVAL +1 DAY AS d FROM t WINDOW w AS (ORDER BY a)",
    "SELECT INTERVAL -'1' DAY AS a, INTERVAL 1 DAY 2 HOURS AS b FROM t",
    "SELECT c FROM t LATERAL VIEW EXPLODE(b) AS c",
    "WITH RECURSIVE x(a) AS (SELECT 1 AS a) SELECT a FROM x AS y(b)",
    "SELECT DISTINCT a, COUNT(DISTINCT b, c) AS n FROM t VERSION AS OF 3 AS t GROUP BY ALL",
    "SELECT a FROM t TIMESTAMP AS OF '2024-01-01' TABLESAMPLE (10 PERCENT)",
    "SELECT a FROM t GROUP BY a, ROLLUP (b) HAVING a > 1",
    "SELECT a FROM t QUALIFY RANK() OVER w = 1 WINDOW w AS (ORDER BY a)",
    "SELECT a FROM t GROUP BY a WITH CUBE ORDER BY a DESC NULLS LAST LIMIT 3 OFFSET 2",
    "SELECT a FROM t GROUP BY GROUPING SETS ((a), ()) SORT BY a",
    "SELECT LISTAGG(a, ',') WITHIN GROUP (ORDER BY b DESC) AS l FROM t",
    "SELECT a FROM t DISTRIBUTE BY a",
    "SELECT a FROM t CLUSTER BY a",
    "SELECT a FROM t LATERAL VIEW OUTER EXPLODE(b) AS c",
    "SELECT a FROM t LEFT JOIN LATERAL EXPLODE(b) AS u(c) ON TRUE",
    "SELECT a FROM t JOIN u USING (a) NATURAL LEFT JOIN v CROSS JOIN w, x",
    "SELECT a FROM t LEFT OUTER JOIN u ON a = b RIGHT JOIN v ON a = c FULL OUTER JOIN w ON a = d",
    "SELECT a FROM t SEMI JOIN u ON a = b LEFT ANTI JOIN v ON a = c",
    "SELECT a FROM t JOIN u ON a = b, v LATERAL VIEW EXPLODE(b) x AS c, d LATERAL VIEW f(a) y",
    "SELECT a FROM (SELECT a FROM t LATERAL VIEW EXPLODE(b) x AS c) AS q JOIN u ON u.a = q.a",
    "SELECT a FROM t WHERE a IN (SELECT b FROM u) AND a IN (1)",
    "SELECT a FROM t PIVOT (SUM(b) FOR c IN (1, 2))",
    "SELECT a FROM (t JOIN u ON a = b) UNION ALL SELECT a FROM VALUES (1) AS v(a)",
    "(SELECT a FROM t ORDER BY a LIMIT 1) EXCEPT ALL SELECT a FROM u INTERSECT SELECT a FROM v",
)


@pytest.mark.parametrize("sql", FOREIGN)
def test_a_clause_that_spark_does_not_have_is_refused_at_its_place(sql: str) -> None:
    with pytest.raises(ForeignClauseError) as caught:
        parse_select(SqlText("view.sql", f"\n{sql}"))
    assert f"Spark has no {FOREIGN[sql]}" in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.line == 2


@pytest.mark.parametrize("sql", SPARKS)
def test_every_clause_of_spark_is_read(sql: str) -> None:
    parse_select(SqlText("view.sql", sql))


@pytest.mark.parametrize("parameter", [":day", "?", "${day}", "{day}"])
def test_a_parameter_is_refused_because_nobody_gives_it_a_value(parameter: str) -> None:
    with pytest.raises(UnboundParameterError) as caught:
        parse_select(SqlText("v.sql", f"SELECT a FROM t\nWHERE b = {parameter}"))
    assert caught.value.location.line == 2
    assert parameter in str(caught.value)


def test_a_step_of_a_query_is_refused_because_it_reads_the_outputs() -> None:
    """The parser adds ``WHERE a > 1`` to the SELECT, where it filters the table's column."""
    with pytest.raises(PipeSyntaxError) as caught:
        parse_select(SqlText("v.sql", "SELECT a + 1 AS a FROM t\n|> WHERE a > 1"))
    assert str(caught.value.location) == "v.sql:2:1"
    parse_select(SqlText("v.sql", "SELECT '|>' AS a FROM t"))


def test_a_query_that_starts_with_from_is_told_its_remedy() -> None:
    with pytest.raises(NotOneSelectError, match="write SELECT before FROM"):
        parse_select(SqlText("v.sql", "FROM t SELECT a"))

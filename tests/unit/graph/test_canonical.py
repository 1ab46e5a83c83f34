"""The canonical query is one that Spark takes."""

from __future__ import annotations

import pytest

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

TABLES = {TableName.parse("silver.t"): {"a": "int", "tags": "array<string>", "m": "map<int,int>"}}
# Spark names the columns of a generator after its type.
GENERATED = {
    "SELECT x.col FROM (SELECT a, EXPLODE(tags) FROM silver.t) AS x": (
        "SELECT x.col AS col FROM (SELECT t.a AS a, EXPLODE(t.tags) FROM silver.t AS t) AS x"
    ),
    "WITH x AS (SELECT EXPLODE(m) FROM silver.t) SELECT x.key, value FROM x": (
        "WITH x AS (SELECT EXPLODE(t.m) FROM silver.t AS t) SELECT x.key AS key, value AS value "
        "FROM x AS x"
    ),
    "SELECT n FROM (SELECT EXPLODE(tags) FROM silver.t) AS x(n)": (
        "SELECT x.n AS n FROM (SELECT EXPLODE(t.tags) AS n FROM silver.t AS t) AS x"
    ),
    "SELECT x._col_0 FROM (SELECT EXPLODE(tags) AS _col_0 FROM silver.t) AS x": (
        "SELECT x._col_0 AS _col_0 FROM (SELECT EXPLODE(t.tags) AS _col_0 FROM silver.t AS t) AS x"
    ),
}


@pytest.mark.parametrize("written", GENERATED)
def test_a_generator_without_a_name_gets_none(written: str):
    text = SqlText("view.sql", written)
    tree = parse_select(text)
    resolved = resolve(tree, TABLES, text, "view")
    assert resolved.problems == ()
    assert to_sql(canonical_query(tree, resolved.tree)) == GENERATED[written]

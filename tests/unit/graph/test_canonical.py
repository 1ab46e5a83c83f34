"""The canonical query is one that Spark takes."""

from __future__ import annotations

import pytest

from spark_jobs.graph.canonical import canonical_query, output_columns
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName

COLUMNS = {
    "a": "int",
    "tags": "array<string>",
    "m": "map<int,int>",
    "st": "struct<City:string,at:struct<x:int>>",
    "sts": "array<struct<City:string,at:struct<x:int>>>",
}
TABLES = {TableName.parse("silver.t"): COLUMNS}
# Of elements and fields.
TYPES = {
    "st['city']": "string",
    "st['at'].x": "int",
    "sts['City']": "array<string>",
    "sts.at.x": "array<int>",
    "sts['City'][0]": "string",
    "sts[0]['at']['x']": "int",
    "tags[a]": "string",
}
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


@pytest.mark.parametrize("value", TYPES)
def test_elements_and_fields_have_types(value: str):
    text = SqlText("view.sql", f"SELECT {value} AS v FROM silver.t")
    tree = parse_select(text)
    (column,) = output_columns(tree, resolve(tree, TABLES, text, "view").tree)
    assert column.type == TYPES[value]


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (
            "COUNT(*) AS n, MAX(a) + 1 AS m FROM silver.t GROUP BY ALL HAVING n > 0",
            "COUNT(*) AS n, MAX(t.a) + 1 AS m FROM silver.t AS t HAVING COUNT(*) > 0",
        ),
        (
            "a, COUNT(*) AS n FROM silver.t GROUP BY ALL",
            "t.a AS a, COUNT(*) AS n FROM silver.t AS t GROUP BY t.a",
        ),
        # No row over no rows.
        (
            "1 AS k, COUNT(*) AS n FROM silver.t GROUP BY ALL",
            "1 AS k, COUNT(*) AS n FROM silver.t AS t GROUP BY ALL",
        ),
    ],
)
def test_group_by_all_of_aggregates_only_is_one_group(written: str, canonical: str):
    text = SqlText("view.sql", f"SELECT {written}")
    tree = parse_select(text)
    found = canonical_query(tree, resolve(tree, TABLES, text, "view").tree)
    assert to_sql(found) == f"SELECT {canonical}"

from __future__ import annotations

import pytest

from spark_jobs.graph.lineage import lineage_of

CASES = {
    "a union reads each side": (
        (
            "SELECT u.x AS x FROM (SELECT a.p AS x FROM silver.a AS a "
            "UNION ALL SELECT b.q AS y FROM silver.b AS b) AS u"
        ),
        {"x": ["silver.a.p", "silver.b.q"]},
        {},
    ),
    "through a CTE and its alias": (
        "WITH c AS (SELECT a.p AS x, a.q AS y FROM silver.a AS a) SELECT d.x AS z FROM c AS d",
        {"z": ["silver.a.p"]},
        {"z": "silver.a.p"},
    ),
    "a scalar subquery and its condition": (
        "SELECT (SELECT MAX(b.v) FROM silver.b AS b WHERE b.k = a.k) AS m FROM silver.a AS a",
        {"m": ["silver.a.k", "silver.b.k", "silver.b.v"]},
        {},
    ),
    "a field of a struct is its column": (
        "SELECT a.s.field AS f FROM silver.a AS a",
        {"f": ["silver.a.s"]},
        {},
    ),
    "what a generator gives out": (
        "SELECT e.item AS item FROM silver.a AS a LATERAL VIEW EXPLODE(a.items) e AS item",
        {"item": ["silver.a.items"]},
        {},
    ),
    "the argument of a lambda is no column": (
        "SELECT TRANSFORM(a.items, one -> one.id) AS ids FROM silver.a AS a",
        {"ids": ["silver.a.items"]},
        {},
    ),
    "a count is of no column": ("SELECT COUNT(*) AS n FROM silver.a AS a", {"n": []}, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_columns_come_from(name: str):
    query, columns, copies = CASES[name]
    found = lineage_of(query)

    assert {key: list(map(str, origins)) for key, origins in found.columns.items()} == columns
    assert {key: str(origin) for key, origin in found.copies.items()} == copies


def test_rows_are_decided_by_conditions_at_every_depth():
    found = lineage_of(
        "SELECT t.x AS x FROM (SELECT a.x AS x, a.g AS g FROM silver.a AS a WHERE a.w > 0) AS t "
        "JOIN silver.b AS b ON b.k = t.g WHERE t.x IN (SELECT c.i FROM silver.c AS c)"
    )

    assert list(map(str, found.rows)) == [
        "silver.a.g",
        "silver.a.w",
        "silver.a.x",
        "silver.b.k",
        "silver.c.i",
    ]


def test_a_derived_table_does_not_read_itself() -> None:
    """Unqualified columns over two tables: their table is unknown."""
    inner = "SELECT q AS v FROM bronze.a AS a JOIN bronze.b AS b"
    assert lineage_of(f"SELECT t.v AS s FROM ({inner}) AS t").columns == {"s": ()}
    nested = f"SELECT (SELECT MAX(t.v) FROM ({inner}) AS t) AS s FROM silver.c AS c"
    assert [str(one) for one in lineage_of(nested).columns["s"]] == ["silver.c.q"]


@pytest.mark.parametrize(
    ("column", "relation"),
    [
        ("s.col", "(SELECT EXPLODE(t.a) AS _col_0 FROM silver.t AS t) AS s"),
        ("p.one", "(SELECT * FROM silver.t AS t PIVOT(MAX(t.a) FOR k IN (1 AS one))) AS p"),
        ("p.val", "(SELECT * FROM silver.t AS t UNPIVOT(val FOR name IN (a, b))) AS p"),
    ],
)
def test_an_output_that_spark_names_is_of_everything_below(column: str, relation: str) -> None:
    found = lineage_of(f"SELECT {column} AS x FROM {relation}")
    assert "silver.t.a" in map(str, found.columns["x"])
    assert not found.copies

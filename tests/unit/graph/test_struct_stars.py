"""``place.*`` is all fields of a struct, unless a table has that name."""

from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from tests.unit.graph.semantic_cases import SCHEMAS


@pytest.mark.parametrize(
    ("selected", "relation", "resolved"),
    [
        ("place.*", "silver.shops", "shops.place.city AS city, shops.place.at AS at"),
        ("S.Place.*", "silver.shops AS s", "s.place.city AS city, s.place.at AS at"),
        (
            "1 AS a, s.place.at.*",
            "silver.shops AS s",
            "1 AS a, s.place.at.x AS x, s.place.at.y AS y",
        ),
        (
            "silver.shops.place.at.x, Silver.shops.place.City",
            "silver.shops",
            "shops.place.at.x AS x, shops.place.city AS city",
        ),
        (
            "spark_catalog.silver.shops.shop, Spark_Catalog.silver.shops.place.at.x",
            "silver.shops",
            "shops.shop AS shop, shops.place.at.x AS x",
        ),
        ("place.* EXCEPT (AT)", "silver.shops AS s", "s.place.city AS city"),
        (
            "place.*",
            "silver.shops AS s CROSS JOIN silver.users AS place",
            "place.customer AS customer, place.segment AS segment, place.age AS age",
        ),
    ],
)
def test_fields_are_named(selected: str, relation: str, resolved: str) -> None:
    text = SqlText("v.sql", f"SELECT {selected} FROM {relation}")
    found = resolve(parse_select(text), SCHEMAS, text, "v")
    assert not found.problems
    assert ", ".join(map(to_sql, found.tree.selects)) == resolved


@pytest.mark.parametrize(
    ("selected", "resolved", "kind"),
    [
        ("(Shop, place.City)", "STRUCT(s.shop AS Shop, s.place.city AS City)", "Shop"),
        (
            "STRUCT(place['City'], old[0].City, old[0], (place).at, place.At['X'] AS col5)",
            (
                "STRUCT(s.place['City'] AS City, s.old[0].city AS City, s.old[0] AS col3, "
                "(s.place).at AS at, s.place.at['X'] AS col5)"
            ),
            "City: STRING",
        ),
        (
            "STRUCT(PARSE_JSON(shop):a.B[0], PARSE_JSON(shop):a['C'])",
            (
                "STRUCT(VARIANT_GET(PARSE_JSON(s.shop), '$.a.B[0]', 'variant') AS B, "
                "VARIANT_GET(PARSE_JSON(s.shop), '$.a[\\'C\\']', 'variant') AS C)"
            ),
            "",
        ),
        (
            "STRUCT((Shop), ELEMENT_AT(MAP('a', 1), 'a'))",
            "STRUCT((s.shop) AS Shop, ELEMENT_AT(MAP('a', 1), 'a') AS col2)",
            "Shop: STRING",
        ),
        ("STRUCT(place.*)", "STRUCT(s.place.*)", ""),
        ("TO_JSON((Shop, 1))", "TO_JSON(STRUCT(s.shop AS Shop, 1))", "STRING"),
        ("Place", "s.place", "City: STRING"),
        ("MAX(place)", "MAX(s.place)", "City: STRING"),
    ],
)
def test_fields_are_named_as_written(selected: str, resolved: str, kind: str) -> None:
    text = SqlText("v.sql", f"SELECT {selected} AS found FROM silver.shops AS s")
    tree = resolve(parse_select(text), SCHEMAS, text, "v").tree
    assert to_sql(tree.selects[0]) == f"{resolved} AS found"
    assert kind in tree.selects[0].type.sql("spark")

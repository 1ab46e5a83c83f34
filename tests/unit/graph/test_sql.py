from __future__ import annotations

import pytest

from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.sql import delta_relation, pin_tables, tables_of
from spark_jobs.names import TableName

ORDERS = {"silver.orders": "pinned"}


@pytest.mark.parametrize(
    ("query", "pinned"),
    [
        ("SELECT a FROM silver.orders", "SELECT a FROM pinned AS orders"),
        ("SELECT o.a FROM silver.orders o", "SELECT o.a FROM pinned o"),
        ("SELECT o.a FROM Silver.Orders AS o", "SELECT o.a FROM pinned AS o"),
        ("SELECT a FROM `silver`.`orders`", "SELECT a FROM pinned AS `orders`"),
        ("SELECT silver.orders.a FROM silver.orders", "SELECT orders.a FROM pinned AS orders"),
        (
            "SELECT silver.orders.a.b, silver.orders.a.b.c.d, silver.orders.* FROM silver.orders",
            "SELECT orders.a.b, orders.a.b.c.d, orders.* FROM pinned AS orders",
        ),
        (
            "SELECT Spark_catalog.silver.orders.a, silver.orders.b FROM silver.orders",
            "SELECT orders.a, orders.b FROM pinned AS orders",
        ),
        (
            "SELECT silver.orders FROM silver.orders AS silver",
            "SELECT silver.orders FROM pinned AS silver",
        ),
        ("SELECT a FROM silver.users", "SELECT a FROM silver.users"),
        (
            "SELECT orders.a FROM silver.orders TABLESAMPLE (3 ROWS) WHERE true",
            "SELECT orders.a FROM pinned TABLESAMPLE (3 ROWS) AS orders WHERE true",
        ),
        (
            "SELECT 1 FROM silver.orders tablesample((1 + 2) percent) REPEATABLE (7), silver.t",
            "SELECT 1 FROM pinned tablesample((1 + 2) percent) REPEATABLE (7) AS orders, silver.t",
        ),
        (
            "SELECT o.a FROM silver.orders TABLESAMPLE (3 ROWS) AS o",
            "SELECT o.a FROM pinned TABLESAMPLE (3 ROWS) AS o",
        ),
        (
            "WITH orders AS (SELECT a FROM silver.orders) SELECT a FROM orders",
            "WITH orders AS (SELECT a FROM pinned AS orders) SELECT a FROM orders",
        ),
        (
            "SELECT a FROM silver.users WHERE EXISTS (SELECT 1 FROM silver.orders x)",
            "SELECT a FROM silver.users WHERE EXISTS (SELECT 1 FROM pinned x)",
        ),
        (
            "SELECT 'silver.orders' AS t -- silver.orders\nFROM silver.orders AS o",
            "SELECT 'silver.orders' AS t                 \nFROM pinned AS o",
        ),
        (
            "SELECT l.a FROM silver.orders AS l JOIN silver.orders AS r ON l.a = r.a",
            "SELECT l.a FROM pinned AS l JOIN pinned AS r ON l.a = r.a",
        ),
        (
            "SELECT listagg(a) AS s FROM silver.orders LATERAL VIEW explode(b) e AS x",
            "SELECT listagg(a) AS s FROM pinned AS orders LATERAL VIEW explode(b) e AS x",
        ),
    ],
)
def test_only_tables_are_replaced(query: str, pinned: str) -> None:
    assert pin_tables(query, ORDERS) == pinned


def test_path_with_odd_characters_is_quoted() -> None:
    relation = delta_relation("/lake/it's `odd`/ä b", 3)

    assert to_sql(relation) == "delta.`/lake/it's ``odd``/ä b` VERSION AS OF 3"


def test_pinned_table_keeps_its_alias_behind_the_version() -> None:
    pinned = pin_tables(
        "SELECT o.a FROM silver.orders AS o", {"silver.orders": delta_relation("/x", 7)}
    )

    assert pinned == "SELECT o.a FROM delta.`/x` VERSION AS OF 7 AS o"


def test_tables_are_those_of_the_lakehouse() -> None:
    query = """
        WITH recent AS (SELECT * FROM silver.orders), users AS (SELECT 1 AS a)
        SELECT * FROM recent JOIN users JOIN gold.spend
        WHERE a IN (SELECT a FROM bronze.lake)
    """

    assert tables_of(query) == tuple(
        TableName.parse(name) for name in ("bronze.lake", "gold.spend", "silver.orders")
    )


@pytest.mark.parametrize(
    "query",
    [
        "SELECT WINDOW(t, '1 hour') AS w FROM x GROUP BY WINDOW(t, '1 hour')",
        "SELECT a, b FROM x GROUP BY GROUPING SETS ((a), (b), ())",
        "SELECT a, y FROM x LATERAL VIEW OUTER EXPLODE(b) e AS y",
        "SELECT SUM(a) OVER w AS s FROM x WINDOW w AS (PARTITION BY b)",
    ],
)
def test_spark_syntax_survives_a_round_trip(query: str) -> None:
    assert to_sql(parse(query)) == query


def test_a_query_of_with_is_no_table_in_any_case() -> None:
    assert (
        tables_of("WITH s AS (SELECT 1 AS a) SELECT x.a FROM S JOIN (SELECT a FROM S) AS x") == ()
    )

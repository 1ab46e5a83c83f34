from __future__ import annotations

import pytest

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.errors import UnknownTableError
from spark_jobs.graph.query import QueryNotReadOnlyError
from spark_jobs.graph.statements import (
    TIME_ZONE,
    SchemaUnknownError,
    SettingRefusedError,
    Statement,
    check_look,
    check_settings,
    qualified,
    split_explain,
)

TABLES = ["gold.daily", "silver.orders", "ops.freshness"]
SCHEMAS = ["gold", "silver", "ops"]


@pytest.mark.parametrize(
    "text",
    [
        f"SET {TIME_ZONE}=Europe/Berlin",
        f"set {TIME_ZONE} = 'UTC'",
        f"SET {TIME_ZONE}",
        "SET TIME ZONE 'Asia/Tokyo'",
        "SET TIME ZONE LOCAL",
    ],
)
def test_a_client_chooses_its_time_zone(text: str) -> None:
    check_settings(Statement("SetCommand", text))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SET spark.sql.ansi.enabled = false", ("spark.sql.ansi.enabled",)),
        ("SET `spark.sql.extensions` = x", ("spark.sql.extensions",)),
        ("SET spark.sql.thriftServer.queryTimeout=0", ("spark.sql.thriftServer.queryTimeout",)),
        (f"SET {TIME_ZONE}2 = x", (f"{TIME_ZONE}2",)),
        (f"SET fs.s3a.endpoint=x; SET {TIME_ZONE}=UTC", ("fs.s3a.endpoint",)),
        ("SET", ()),
        ("SET -v", ()),
    ],
)
def test_all_other_settings_are_refused(text: str, keys: tuple[str, ...]) -> None:
    with pytest.raises(SettingRefusedError) as refusal:
        check_settings(Statement("SetCommand", text))
    assert refusal.value.keys == keys


def test_settings_that_came_with_the_connection_are_refused_for_every_statement() -> None:
    brought = ("spark.sql.datetime.java8API.enabled", TIME_ZONE, "hive.server2.x.fetch.size")
    check_settings(Statement("Project", "SELECT 1", changed=brought))
    with pytest.raises(SettingRefusedError) as refusal:
        check_settings(
            Statement("Project", "SELECT 1", changed=(*brought, "spark.sql.catalog.x", "fs.impl"))
        )
    assert refusal.value.keys == ("fs.impl", "spark.sql.catalog.x")


@pytest.mark.parametrize(
    "statement",
    [
        Statement("ShowTables", "SHOW TABLES IN gold", schemas=("gold",)),
        Statement("ShowTables", "SHOW TABLES"),
        Statement("SetCatalogAndNamespace", "USE default", schemas=("default",)),
        Statement("DescribeRelation", "DESCRIBE GOLD.Daily", tables=("GOLD.Daily",)),
        Statement("DescribeRelation", "DESCRIBE daily", schema="gold", tables=("daily",)),
    ],
)
def test_served_tables_can_be_shown_and_described(statement: Statement) -> None:
    check_look(statement, tables=TABLES, schemas=SCHEMAS)


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (Statement("ShowTables", "", schemas=("bronze",)), SchemaUnknownError),
        (Statement("ShowTables", "", schemas=("global_temp",)), SchemaUnknownError),
        (Statement("ShowTables", "", schemas=("evil.gold",)), SchemaUnknownError),
        (Statement("DescribeRelation", "", tables=("bronze.orders",)), UnknownTableError),
        (Statement("DescribeRelation", "", tables=("delta./lake/bronze/x",)), UnknownTableError),
        (Statement("DescribeRelation", "", tables=("csv./etc/passwd",)), UnknownTableError),
        (Statement("DescribeRelation", "", tables=("daily",)), UnknownTableError),
    ],
)
def test_other_schemas_and_tables_cannot_be_shown(
    statement: Statement, error: type[LakehouseError]
) -> None:
    with pytest.raises(error):
        check_look(statement, tables=TABLES, schemas=SCHEMAS)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("EXPLAIN SELECT 1", "SELECT 1"),
        ("explain  cost\nWITH a AS (SELECT 1) SELECT 1", "WITH a AS (SELECT 1) SELECT 1"),
        ("EXPLAIN EXTENDED (SELECT 1)", "(SELECT 1)"),
    ],
)
def test_a_select_is_explained(text: str, query: str) -> None:
    words, rest = split_explain(text)
    assert (words + rest, rest) == (text, query)


@pytest.mark.parametrize("text", ["EXPLAIN DROP TABLE x", "EXPLAIN EXTENDED INSERT INTO x"])
def test_only_queries_are_explained(text: str) -> None:
    with pytest.raises(QueryNotReadOnlyError):
        split_explain(text)


@pytest.mark.parametrize(
    ("query", "whole"),
    [
        ("SELECT * FROM `daily` AS d", "SELECT * FROM gold.`daily` AS d"),
        ("SELECT * FROM silver.orders JOIN daily", "SELECT * FROM silver.orders JOIN gold.daily"),
        ("SELECT e FROM range(3) AS e (e)", "SELECT e FROM range(3) AS e (e)"),
        ("SELECT (SELECT max(a) FROM daily)", "SELECT (SELECT max(a) FROM gold.daily)"),
        (
            "SELECT a FROM daily -- daily\nUNION ALL SELECT b FROM daily",
            "SELECT a FROM gold.daily         \nUNION ALL SELECT b FROM gold.daily",
        ),
    ],
)
def test_a_table_without_a_schema_is_of_the_chosen_one(query: str, whole: str) -> None:
    assert qualified(query, "gold") == whole


def test_qualified_refuses_statements_other_than_select() -> None:
    with pytest.raises(QueryNotReadOnlyError):
        qualified("INSERT INTO daily VALUES (1)", "gold")

from __future__ import annotations

import pytest

from spark_jobs.graph.errors import SqlSyntaxError, UnknownTableError
from spark_jobs.graph.query import QueryNotReadOnlyError, query_tables

KNOWN = ["bronze.orders", "silver.orders", "silver.users", "gold.daily", "ops.freshness"]


def tables(query: str) -> list[str]:
    return list(query_tables(query, known=KNOWN))


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("SELECT 1", []),
        ("select * from gold.daily;", ["gold.daily"]),
        ("SELECT * FROM GOLD.Daily", ["gold.daily"]),
        (
            "SELECT * FROM `silver`.`orders` o JOIN silver.users u ON o.a = u.a",
            ["silver.orders", "silver.users"],
        ),
        ("WITH daily AS (SELECT * FROM gold.daily) SELECT * FROM daily", ["gold.daily"]),
        ("SELECT 1 UNION ALL SELECT a FROM gold.daily", ["gold.daily"]),
        ("SELECT u.a FROM (silver.users) AS u", ["silver.users"]),
        (
            "SELECT 1 FROM (gold.daily JOIN (silver.users) AS u ON true) AS both",
            ["gold.daily", "silver.users"],
        ),
        ("WITH d AS (SELECT 1 AS x) SELECT u.x FROM (d) AS u", []),
        ("SELECT * FROM range(10)", []),
        ("SELECT from_avro(x'00', '\"int\"'), from_xml('<a>1</a>', 'a INT')", []),
        ("SELECT from_json('{}', 'a DATE', map('dateFormat', 'yyyy'))", []),
        (
            "SELECT (SELECT max(a) FROM gold.daily) AS m FROM silver.users",
            ["gold.daily", "silver.users"],
        ),
        ("SELECT e FROM silver.users LATERAL VIEW explode(tags) AS e", ["silver.users"]),
        ("-- why\nSELECT 1 /* DROP TABLE x */", []),
        ("SELECT ';' AS semicolon FROM gold.daily", ["gold.daily"]),
    ],
)
def test_a_select_is_read(query: str, read: list[str]) -> None:
    assert tables(query) == read


@pytest.mark.parametrize(
    "query",
    [
        "DROP TABLE gold.daily",
        "DELETE FROM gold.daily",
        "INSERT INTO gold.daily SELECT 1",
        "MERGE INTO gold.daily USING silver.users ON true WHEN MATCHED THEN DELETE",
        "UPDATE gold.daily SET a = 1",
        "CREATE TABLE x AS SELECT 1",
        "CREATE OR REPLACE TEMP VIEW v AS SELECT 1",
        "TRUNCATE TABLE gold.daily",
        "VACUUM gold.daily",
        "OPTIMIZE gold.daily",
        "RESTORE TABLE gold.daily TO VERSION AS OF 0",
        "SET spark.sql.ansi.enabled = false",
        "ADD JAR '/tmp/x.jar'",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "CALL system.run()",
        "BEGIN SELECT 1; END",
        "SELECT 1; DROP TABLE gold.daily",
        "SELECT 1; SELECT 2",
        "WITH a AS (SELECT 1) INSERT INTO gold.daily SELECT * FROM a",
        "FROM silver.users INSERT INTO gold.daily SELECT *",
        "SELECT java_method('java.lang.Runtime', 'getRuntime')",
        "SELECT reflect('java.lang.System', 'exit', 1) FROM gold.daily",
        "SELECT * FROM gold.daily WHERE TRY_REFLECT('java.util.UUID', 'randomUUID') IS NULL",
        "SELECT `reflect`('java.lang.System', 'exit', 1)",
        "SELECT TRANSFORM(a) USING 'cat' AS (b) FROM gold.daily",
        "SELECT from_avro(x'00', '\"int\"', map('avroSchemaUrl', '/secret'))",
        "SELECT From_XML('<a/>', 'a INT', map('rowValidationXSDPath', '/secret'))",
        "SELECT schema_of_xml('<a/>', options => map('rowValidationXSDPath', '/secret'))",
        "SELECT `schema_of_avro`('\"int\"', map('avroSchemaUrl', '/secret'))",
        "",
        "   ;  ",
        "-- nothing",
    ],
)
def test_statements_that_do_more_than_read_are_refused(query: str) -> None:
    with pytest.raises((QueryNotReadOnlyError, SqlSyntaxError)) as refusal:
        tables(query)
    assert refusal.value.condition in {"QUERY_NOT_READ_ONLY", "SQL_SYNTAX"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS a /* /*+ */ , java_method('java.lang.System', 'exit', 1) AS b -- */",
        "SELECT 1 AS a /* /*+ */ FROM text.`/etc/passwd` -- */",
        "SELECT 1 AS a {# FROM gold.daily #}",
        "SELECT 1 AS a FROM s3://lake/--/gold",
        "SELECT 1e+5r'\\', reflect('java.lang.System', 'exit', 1), '' AS c",
        "SELECT 1 AS a FROM gold.daily UNION \u017fELECT 2 AS a FROM silver.users",
        "SELECT 1 AS a */ 2",
        "SELECT a FROM gold.daily UNION ALL (1)",
        "SELECT a FROM gold.daily |> UNION ALL SELECT a FROM gold.daily",
        "SELECT 1 AS a /* /* */",
        "SELECT /*+ BROADCAST(d) FROM gold.daily AS d",
    ],
)
def test_text_that_spark_parses_differently_is_refused(query: str) -> None:
    with pytest.raises(SqlSyntaxError):
        tables(query)


@pytest.mark.parametrize(
    ("query", "table", "hint"),
    [
        ("SELECT * FROM silver.order", "silver.order", 'Did you mean "silver.orders"?'),
        ("SELECT * FROM daily", "daily", 'Did you mean "gold.daily"?'),
        ("SELECT * FROM nothing.like_it", "nothing.like_it", "layer.name"),
        ("SELECT * FROM delta.`/etc`", "delta./etc", "layer.name"),
        ("SELECT * FROM parquet.`/secret`", "parquet./secret", "layer.name"),
        ("SELECT * FROM text.`/etc/passwd`", "text./etc/passwd", "layer.name"),
        ("SELECT 1 FROM (text.`/etc/passwd`) AS t", "text./etc/passwd", "layer.name"),
        ("SELECT 1 FROM gold.daily JOIN (delta.`/etc`) AS t ON true", "delta./etc", "layer.name"),
        ("WITH t AS (SELECT 1) SELECT 1 FROM (secret.t) AS t", "secret.t", "layer.name"),
        ("SELECT * FROM `gold.daily`", "gold.daily", 'Did you mean "gold.daily"?'),
        ("SELECT * FROM spark_catalog.gold.daily", "spark_catalog.gold.daily", "layer.name"),
        (
            "SELECT 1 FROM Spark_Catalog.Gold.daily",
            "Spark_Catalog.Gold.daily",
            "without a catalog: write gold.daily",
        ),
        ("SELECT * FROM gold.daily.history", "gold.daily.history", "gold.daily"),
    ],
)
def test_a_table_that_is_not_declared_is_refused_with_a_suggestion(
    query: str, table: str, hint: str
) -> None:
    with pytest.raises(UnknownTableError) as refusal:
        tables(query)
    assert refusal.value.table == table
    assert hint in (refusal.value.hint or "")
    assert refusal.value.location is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM IDENTIFIER('text.`/etc/passwd`')",
        "SELECT * FROM IDENTIFIER('gold' || '.daily')",
        "SELECT IDENTIFIER('reflect')('java.lang.System', 'exit', 1)",
        "SELECT * FROM table_changes_by_path('/secret', 0)",
        "SELECT * FROM table_changes('gold.daily', 0)",
        # Spark calls a function of this name.
        "SELECT AS (1) c FROM gold.daily",
        "SELECT DISTINCT\nAS (1) c FROM gold.daily",
        # Spark reads a table with this name.
        "SELECT 1 FROM (SELECT) AS t",
        "SELECT 1 FROM gold.daily WHERE EXISTS (SELECT 1 FROM (SELECT\n) AS t)",
    ],
)
def test_a_table_whose_name_is_computed_is_refused(query: str) -> None:
    with pytest.raises((QueryNotReadOnlyError, UnknownTableError, SqlSyntaxError)):
        tables(query)


def test_tables_in_comments_are_ignored() -> None:
    assert tables("SELECT 1 AS a -- why \\\n FROM gold.daily") == []
    assert tables("SELECT /*+ BROADCAST(d) */ 1 AS a FROM gold.daily AS d") == ["gold.daily"]


def test_a_table_may_be_read_at_a_version() -> None:
    query = "SELECT * FROM gold.daily VERSION AS OF 3 AS d JOIN silver.users AS u ON d.a = u.a"
    found = query_tables(query, known=KNOWN)
    assert found == {"gold.daily": True, "silver.users": False}


def test_a_table_at_a_version_needs_an_alias() -> None:
    with pytest.raises(SqlSyntaxError) as refusal:
        tables("SELECT * FROM gold.daily VERSION AS OF 3")
    assert "AS daily" in refusal.value.primary


def test_a_table_that_is_made_when_it_is_read_has_no_versions() -> None:
    assert tables("SELECT * FROM ops.freshness AS f") == ["ops.freshness"]
    with pytest.raises(SqlSyntaxError) as refusal:
        tables("SELECT * FROM ops.freshness VERSION AS OF 3 AS f")
    assert "has no versions" in refusal.value.primary


def test_a_syntax_error_has_a_location() -> None:
    with pytest.raises(SqlSyntaxError) as refusal:
        tables("SELECT a,\n FROM gold.daily")
    assert str(refusal.value.location) == "query:1:9"


@pytest.mark.parametrize(
    ("query", "column", "written"),
    [
        ('SELECT o."status" FROM silver.orders AS o', 10, '"status"'),
        ('SELECT "o".status FROM silver.orders AS o', 8, '"o"'),
        ("SELECT o.status AS 's' FROM silver.orders AS o", 20, "'s'"),
        ('SELECT o.status FROM silver.orders AS "o"', 39, '"o"'),
        ('SELECT o.status FROM "silver"."orders" AS o', 22, '"silver"'),
        ('SELECT o.status FROM "silver.orders" AS o', 22, '"silver.orders"'),
        ('WITH "a" AS (SELECT 1 AS x) SELECT a.x FROM a', 6, '"a"'),
        ("SELECT STRUCT(1 AS 'a') AS s", 20, "'a'"),
        (
            'SELECT o.status FROM silver.orders AS o JOIN silver.users AS u USING ("id")',
            71,
            "'id'",
        ),
    ],
)
def test_a_name_in_the_quotes_of_a_text_is_refused_as_by_spark(
    query: str, column: int, written: str
) -> None:
    """Other databases write names in double quotes; Spark does not parse such a query."""
    with pytest.raises(SqlSyntaxError) as refusal:
        query_tables(query, known=["silver.orders", "silver.users"])
    assert f"{written} is a text, not a name: write " in refusal.value.primary
    assert refusal.value.location is not None
    assert refusal.value.location.column == column


@pytest.mark.parametrize(
    "query",
    [
        """SELECT "status" AS a, 'b' 'c' AS d, 'o' AS o FROM silver.orders AS o""",
        """SELECT o.m['a'].b AS x, o.m["status"] AS y FROM silver.orders AS o""",
        """SELECT DATE "2024-01-01" AS day, INTERVAL "1" DAY AS one""",
        """SELECT TRIM(BOTH 'x' FROM "xax") AS a, SUBSTRING("abc" FROM 2) AS b""",
        """SELECT o.`status` FROM `silver`.`orders` AS `o` WHERE o.status LIKE "p%" ESCAPE "!" """,
        """SELECT o.status FROM silver.orders VERSION AS OF 3 AS o WHERE o.status IN ("a", "o")""",
    ],
)
def test_texts_at_the_place_of_texts_are_read(query: str) -> None:
    query_tables(query, known=["silver.orders"])

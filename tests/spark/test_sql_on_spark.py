"""What the compiler says about SQL, held to the Spark that runs it."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.suites import EXPECTATION_TYPES_FILE
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.function_arguments import ARGUMENTS_FILE
from spark_jobs.graph.functions import FUNCTIONS_FILE
from spark_jobs.graph.sql import delta_relation, pin_tables
from tests.golden.declaration_cases import RIGHT, write_project
from tests.spark.function_arguments import argument_counts
from tests.spark.reference_data import expectation_types, spark_functions

# What is compared is what a pipeline computes: Spark compiles it.
pytestmark = pytest.mark.usefixtures("compiled")
HEADER = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"

SELECTS = {
    "sums": "SELECT user_id, SUM(amount) AS s, AVG(amount) AS a, COUNT(*) AS n,"
    " MAX(created_at) AS t FROM silver.orders GROUP BY ALL",
    "arithmetic": "SELECT order_id + 1 AS a, order_id / 2 AS b, amount * 2 AS c, amount + 1.5 AS d,"
    " ROUND(amount, 1) AS e, order_id % 3 AS f, order_id DIV 2 AS g, -amount AS h"
    " FROM silver.orders",
    "windows": "SELECT window.start AS w, window(created_at, '1 hour').end AS e, COUNT(*) AS n"
    " FROM silver.orders GROUP BY window(created_at, '1 hour')",
    "sessions": "SELECT user_id, session_window(at, '10 minutes').start AS s, COUNT(*) AS n"
    " FROM silver.clicks GROUP BY user_id, session_window(at, '10 minutes')",
    "sets": "SELECT user_id, page, COUNT(*) AS n FROM silver.clicks"
    " GROUP BY GROUPING SETS ((user_id), (page), ())",
    "lateral": "SELECT c.user_id, pos, part FROM silver.clicks AS c"
    " LATERAL VIEW posexplode(split(c.page, '/')) e AS pos, part",
    "texts": "SELECT user_id, listagg(page) AS pages, collect_list(page) AS l,"
    " date_trunc('DAY', MAX(at)) AS d, percentile(user_id, 0.95) AS p,"
    " CAST(MAX(at) AS DATE) AS day, COUNT(DISTINCT page) AS u, upper(MAX(page)) AS m"
    " FROM silver.clicks GROUP BY ALL",
    "ranked": "WITH orders AS (SELECT user_id, amount FROM silver.orders)"
    " SELECT user_id, amount, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY amount DESC) AS r,"
    " CASE WHEN amount > 3 THEN 'big' ELSE 'small' END AS size, COALESCE(amount, 0) AS z"
    " FROM orders",
    "joined": "SELECT user_id, o.amount, c.page FROM silver.orders AS o"
    " LEFT JOIN silver.clicks AS c USING (user_id)",
    "union": "SELECT user_id, amount FROM silver.orders UNION ALL"
    " SELECT user_id, CAST(1 AS DECIMAL(12, 2)) FROM silver.clicks",
    "having": "SELECT o.user_id, SUM(o.amount) AS s FROM silver.orders AS o WHERE EXISTS"
    " (SELECT 1 FROM silver.clicks AS c WHERE c.user_id = o.user_id)"
    " GROUP BY o.user_id HAVING s > 1",
}


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    lake = tmp_path_factory.mktemp("it's a `lake`")
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    rows = {
        "silver.orders": (
            [(1, 7, 10, at), (2, 7, 5, at), (3, 8, None, at)],
            "order_id BIGINT, user_id BIGINT, amount INT, created_at TIMESTAMP",
        ),
        "silver.clicks": (
            [("a", 7, "x/y", at), ("b", 9, "z", at)],
            "event_id STRING, user_id BIGINT, page STRING, at TIMESTAMP",
        ),
    }
    for name, (values, schema) in rows.items():
        frame = spark.createDataFrame(values, schema)
        if name == "silver.orders":
            frame = frame.withColumn("amount", frame["amount"].cast("decimal(12,2)"))
        frame.write.format("delta").save(str(lake / name))
    return {name: delta_relation(str(lake / name), 0) for name in rows}


@pytest.mark.parametrize("name", SELECTS)
def test_compiled_view_means_what_was_written(
    spark: SparkSession, tables: dict[str, Any], tmp_path: Path, name: str
) -> None:
    project = write_project(tmp_path, {"sql/gold/view.sql": HEADER + SELECTS[name]})
    entry = compile_project(project).gold["view"]
    written = spark.sql(pin_tables(entry.sql, tables))
    canonical = spark.sql(pin_tables(entry.query, tables))

    assert canonical.schema.simpleString() == written.schema.simpleString()
    assert canonical.exceptAll(written).count() == written.exceptAll(canonical).count() == 0
    told = {column.name: column.type for column in entry.columns if column.type}
    types = {field.name: field.dataType.simpleString() for field in written.schema}
    assert told == {column: types[column] for column in told}
    assert [column.name for column in entry.columns] == written.columns


def current(file: Path, compiled: object, *, indent: int) -> None:
    text = json.dumps(compiled, indent=indent) + "\n"
    if os.environ.get("REWRITE"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


def test_list_of_functions_is_that_of_the_pinned_spark(spark: SparkSession) -> None:
    current(FUNCTIONS_FILE, spark_functions(spark), indent=0)


def test_arguments_of_functions_are_those_of_the_pinned_spark(spark: SparkSession) -> None:
    current(ARGUMENTS_FILE, argument_counts(spark), indent=0)


@pytest.mark.filterwarnings("ignore")
def test_list_of_expectations_is_that_of_the_pinned_release() -> None:
    current(EXPECTATION_TYPES_FILE, expectation_types(), indent=1)

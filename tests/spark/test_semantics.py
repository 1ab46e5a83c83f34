"""Spark agrees on each mistake that is refused before it is asked, and on each relative."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ArithmeticException, IllegalArgumentException
from pyspark.sql import SparkSession

from spark_jobs.graph.canonical import canonical_query
from spark_jobs.graph.dialect import to_sql
from spark_jobs.graph.parsing import SqlText, parse_select
from spark_jobs.graph.resolve import resolve
from spark_jobs.names import TableName
from tests.unit.graph.semantic_cases import COLUMNS, REFUSED, TAKEN

# A star, which a view may not have.
NOT_CANONICAL = {"fields of a struct"}


@pytest.fixture(scope="module")
def analyzed(spark: SparkSession) -> Iterator[SparkSession]:
    """A session with empty views of the cases' tables; nothing is computed."""
    for name, columns in COLUMNS.items():
        schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        spark.createDataFrame([], schema).createOrReplaceTempView(f"semantic_{name}")
    yield spark
    for name in COLUMNS:
        spark.catalog.dropTempView(f"semantic_{name}")


def on_views(sql: str) -> str:
    return sql.replace("silver.", "semantic_")


@pytest.mark.parametrize("case", REFUSED)
def test_spark_refuses_what_the_compiler_refuses(analyzed: SparkSession, case: str):
    # An unknown unit of an interval is an illegal argument.
    with pytest.raises((AnalysisException, ArithmeticException, IllegalArgumentException)):
        _ = analyzed.sql(on_views(REFUSED[case][0])).schema


@pytest.mark.parametrize("case", TAKEN)
def test_spark_accepts_what_the_compiler_accepts(analyzed: SparkSession, case: str):
    assert analyzed.sql(on_views(TAKEN[case])).schema


@pytest.mark.parametrize("case", sorted(TAKEN.keys() - NOT_CANONICAL))
def test_spark_accepts_the_canonical_form(analyzed: SparkSession, case: str):
    tables = {TableName.parse(f"silver.{name}"): columns for name, columns in COLUMNS.items()}
    text = SqlText("view.sql", TAKEN[case])
    tree = parse_select(text)
    query = canonical_query(tree, resolve(tree, tables, text, "view").tree)
    assert analyzed.sql(on_views(to_sql(query))).schema

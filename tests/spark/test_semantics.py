"""Spark agrees on each mistake that is refused before it is asked, and on each relative."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException, ArithmeticException
from pyspark.sql import SparkSession

from tests.unit.graph.semantic_cases import COLUMNS, REFUSED, TAKEN


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
    with pytest.raises((AnalysisException, ArithmeticException)):
        _ = analyzed.sql(on_views(REFUSED[case][0])).schema


@pytest.mark.parametrize("case", TAKEN)
def test_spark_accepts_what_the_compiler_accepts(analyzed: SparkSession, case: str):
    assert analyzed.sql(on_views(TAKEN[case])).schema

"""Maintained by Spark equals computed by Spark: the queries and histories of DuckDB's test."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession
from sqlglot import exp

from spark_jobs.graph.dialect import to_sql
from tests.properties.engine import Engine
from tests.properties.histories import Yield, run
from tests.properties.seeds import few_seeds
from tests.properties.tables import Row, Types, plain


class OnSpark(Engine):
    """Programs, and what is right, by Spark; the plain engine chooses the changes."""

    splits = False

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self.spark = spark

    def load(self, name: str, types: Types, rows: Sequence[Row]) -> None:
        super().load(name, types, rows)
        schema = ", ".join(f"{column} {kind}" for column, kind in types.items())
        held = [tuple(list(v) if isinstance(v, tuple) else v for v in row) for row in rows]
        self.spark.createDataFrame(held, schema).createOrReplaceTempView(name)

    def rows(self, query: exp.Expr) -> list[Row]:
        return [tuple(map(plain, row)) for row in self.spark.sql(to_sql(query)).collect()]

    def create(self, name: str, query: exp.Expr) -> None:
        frame = self.spark.sql(to_sql(query))
        frame.localCheckpoint().createOrReplaceTempView(name)

    def table(self, name: str) -> list[Row]:
        return [tuple(map(plain, row)) for row in self.spark.table(name).collect()]


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_view_that_spark_maintains_equals_its_sql(quick: SparkSession) -> None:
    engine, found = OnSpark(quick), Yield()
    for seed in few_seeds(12):
        found.add(run(engine, seed))
    print(found)
    assert found.moved >= found.cases / 2, str(found)

"""Silver's rows against rows of the source database, as bags."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from spark_jobs.silver import source_database
from spark_jobs.silver.source_database import compare_with_source
from tests.spark.silver.world import CHANGES, ORDERS

Rows = list[tuple[str | None, ...]]
SOURCE: Rows = [
    ("1", "placed", "1.50"),
    ("2", "hidden", "2.00"),
    ("3", "paid", None),
    ("3", "paid", None),
]
SAME = [(1, "placed", "3.00"), (3, "paid", None), (3, "paid", None)]


@pytest.mark.parametrize(
    ("silver", "missing", "unexpected"),
    [
        pytest.param(SAME, 0, 0, id="equal"),
        pytest.param(SAME[:2], 1, 0, id="a repeated row once"),
        pytest.param([*SAME, SAME[0]], 0, 1, id="a row too often"),
        pytest.param([*SAME[1:], (1, "placed", "3.01")], 1, 1, id="another value"),
        pytest.param([], 3, 0, id="empty"),
    ],
)
def test_rows_as_bags(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    silver: Rows,
    missing: int,
    unexpected: int,
) -> None:
    monkeypatch.setattr(source_database, "read_table", lambda *_: SOURCE)
    frame = spark.createDataFrame(silver, "order_id bigint, status string, twice string")
    typed = frame.withColumn("twice", frame.twice.cast("decimal(13,2)"))
    found = compare_with_source(spark, typed, CHANGES, ORDERS, dsn="")
    assert (found.source_rows, found.missing, found.unexpected) == (4, missing, unexpected)
    assert len(found.examples) == missing + unexpected
    assert found.equal == (not missing and not unexpected)

"""What Spark does around a small query: code that it compiles, memory that it takes."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.storage.rows import fetched


def test_rows_are_fetched_by_code_that_is_compiled_once(
    compiled: SparkSession, tmp_path: Path
) -> None:
    metrics = compiled._jvm.org.apache.spark.metrics.source.CodegenMetrics  # type: ignore[union-attr]
    place = str(tmp_path / "rows")
    compiled.range(10).write.parquet(place)

    def both() -> DataFrame:
        rows = compiled.read.parquet(place)
        return rows.where("id % 2 = 0").unionAll(rows.where("id > 7"))

    first = fetched(both())
    assert first is not None
    compilations = metrics.METRIC_COMPILATION_TIME().getCount()
    again = fetched(both())
    assert again is not None
    assert again.num_rows == first.num_rows == 7
    assert metrics.METRIC_COMPILATION_TIME().getCount() == compilations


def test_a_small_hash_table_takes_a_small_page(spark: SparkSession) -> None:
    environment = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get()  # type: ignore[union-attr]
    assert environment.memoryManager().pageSizeBytes() == 4 << 20

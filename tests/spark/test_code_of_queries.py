"""What Spark does around a small query: code that it compiles, memory that it takes."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.bronze.table import COLUMNS as BRONZE_TABLE
from spark_jobs.settings import Settings
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.rows import fetched
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.tables import append
from tests.spark.silver.world import CLICKS, EVENTS, bronze, event


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


def test_the_checks_of_a_silver_stream_are_not_compiled_as_one_method(
    compiled: SparkSession, settings: Settings
) -> None:
    place = Lake(settings.lake).location(EVENTS.table_name)
    create_stream_table(compiled, place, BRONZE_TABLE)
    record = bronze(compiled, [event(event_id="a", user_id=1)])
    append(record.withColumn("arrival_date", sf.to_date("arrived_at")), place)
    with ControlStore.open(settings.control_url) as store:
        flow = SilverFlow(EVENTS, CLICKS, settings, store)
        flow.create_tables(compiled)
        query = flow.start(compiled)
        try:
            query.processAllAvailable()
            plan = query._jsq.explainInternal(False)
        finally:
            query.stop()
    together = re.compile(r"\*\(\d+\) ")
    assert "Project" in plan
    assert not together.search(plan)
    # Other queries of the application are, as usual.
    usual = compiled.range(9).where("id > 3")._jdf.queryExecution().executedPlan().toString()
    assert together.search(usual)


def test_a_small_hash_table_takes_a_small_page(spark: SparkSession) -> None:
    environment = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get()  # type: ignore[union-attr]
    assert environment.memoryManager().pageSizeBytes() == 4 << 20

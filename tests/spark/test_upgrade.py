"""Tables of an earlier release: the streams take up what is new, and go on where they were."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.flow import BronzeFlow
from spark_jobs.bronze.table import COLUMNS
from spark_jobs.bronze.topics import Topics
from spark_jobs.names import BronzeColumn
from spark_jobs.settings import load_settings
from spark_jobs.storage.log import schema, table_version
from spark_jobs.storage.streams import create_stream_table, read_stream
from spark_jobs.storage.tables import append
from tests.spark.silver.world import EVENTS


def test_bronze_gets_missing_columns_and_its_reader_continues(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    flow = BronzeFlow(EVENTS, settings, Topics(KafkaAccess(settings.kafka)))
    held = [one for one in COLUMNS if one.name != BronzeColumn.HEADERS]
    by_date = (BronzeColumn.ARRIVAL_DATE,)
    create_stream_table(spark, flow.table, held, partition_by=by_date)
    record = {str(one.name): sf.lit(None).cast(one.type) for one in COLUMNS}
    seen: list[Row] = []

    def write(offset: int, *names: str) -> None:
        row = spark.range(1).select(*(record[name].alias(name) for name in names))
        append(row.withColumn(BronzeColumn.OFFSET, sf.lit(offset).cast("bigint")), flow.table)

    def keep(batch: DataFrame, number: int) -> None:
        del number
        seen.extend(batch.collect())

    def read() -> list[int]:
        """What the silver side of the same checkpoint has not seen yet."""
        seen.clear()
        stream = read_stream(spark, flow.table).writeStream.foreachBatch(keep)
        query = stream.option("checkpointLocation", f"{tmp_path}/checkpoint")
        query.trigger(availableNow=True).start().awaitTermination()
        return [row[BronzeColumn.OFFSET] for row in seen]

    write(1, *(one.name for one in held))
    assert read() == [1]
    flow.create_tables(spark)
    assert {one.name: one.type for one in schema(flow.table)} == {
        str(one.name): one.type for one in COLUMNS
    }
    upgraded = table_version(flow.table)
    flow.create_tables(spark)
    assert table_version(flow.table) == upgraded
    write(2, *(str(one.name) for one in COLUMNS))
    assert read() == [2]
    assert BronzeColumn.HEADERS in seen[0]

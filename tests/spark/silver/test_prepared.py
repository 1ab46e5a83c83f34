"""Steps that were prepared do to any DataFrame what the function does."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_jobs.graph.manifest import SilverEntry, SourceEntry
from spark_jobs.graph.projection import split_projection
from spark_jobs.sections import StreamSettings
from spark_jobs.silver.parse.prepared import prepared
from spark_jobs.silver.parse.row_steps import projected_columns, row_steps
from spark_jobs.silver.parse.rows import silver_rows
from spark_jobs.silver.parse.typed import typed_records
from tests.spark.silver.world import CHANGES, CLICKS, EVENTS, ORDERS, bronze, change, event

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("source", "entry"), [(EVENTS, CLICKS), (CHANGES, ORDERS)])
def test_batches_one_after_the_other(
    spark: SparkSession, source: SourceEntry, entry: SilverEntry
) -> None:
    calls = []

    def transform(frame: DataFrame) -> DataFrame:
        calls.append(frame)
        typed = typed_records(frame, source, max_bytes=1000)
        return silver_rows(typed, source, entry, projection=split_projection(entry.projection))

    steps = prepared(transform)
    assert len(calls) == 1
    records = [
        event(event_id="a", user_id=1, amount="1.50", at="2026-01-01T00:00:00Z"),
        event(event_id="b", user_id="no number"),
        change("c", 1, 10),
        change("d", 2, 20),
        (None, b"{"),
    ]
    for batch in (records[:2], records[2:], records):
        given = bronze(spark, batch)
        found = [row.asDict(recursive=True) for row in steps(given).collect()]
        assert len(calls) == 1
        assert found == [row.asDict(recursive=True) for row in transform(given).collect()]
        calls.pop()


def test_a_transformation_that_reads_the_frame_cannot_be_prepared() -> None:
    with pytest.raises(AttributeError, match="columns"):
        prepared(lambda frame: frame.select(*frame.columns))
    with pytest.raises(AttributeError, match="where"):
        prepared(lambda frame: frame.where(sf.lit(True)))


def test_equal_declarations_share_their_steps(spark: SparkSession) -> None:
    first = row_steps(EVENTS, CLICKS, max_bytes=1000)
    assert row_steps(EVENTS.model_copy(), CLICKS.model_copy(), max_bytes=1000) is first
    assert row_steps(EVENTS, CLICKS, max_bytes=1001) is not first
    other = CLICKS.model_copy(update={"description": "Something else."})
    assert row_steps(EVENTS, other, max_bytes=1000) is not first
    assert first.columns(spark) is first.columns(spark)
    assert {one.name for one in first.columns(spark)} == {one.name for one in CLICKS.columns}
    # Streams with default settings use the steps that gave the table its types.
    usual = row_steps(EVENTS, CLICKS, max_bytes=StreamSettings().max_record_bytes)
    assert projected_columns(spark, EVENTS, CLICKS) is usual.columns(spark)

"""The stream of a table whose suite holds it: refused until the rules or the policy change."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_jobs.bronze.table import COLUMNS as BRONZE_TABLE
from spark_jobs.definitions.vocabulary import OnFailure
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import BatchHeldError
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.streams import create_stream_table
from spark_jobs.storage.tables import append
from tests.spark.silver.test_expectations import BETWEEN, expect, judged
from tests.spark.silver.world import CLICKS, EVENTS, bronze, event

HOLDING = judged(CLICKS, expect(BETWEEN, column="amount", min_value=0), on_failure=OnFailure.HOLD)


def test_a_stream_is_held_before_a_batch_that_fails(
    spark: SparkSession, settings: Settings
) -> None:
    place = Lake(settings.lake).location(EVENTS.table_name)
    create_stream_table(spark, place, BRONZE_TABLE)
    records = [
        event(event_id=name, user_id=1, amount=amount) for name, amount in (("a", 1), ("b", -1))
    ]
    append(bronze(spark, records).withColumn("arrival_date", sf.to_date("arrived_at")), place)
    with ControlStore.open(settings.control_url) as store:
        flow = SilverFlow(EVENTS, HOLDING, settings, store)
        flow.create_tables(spark)
        query = flow.start(spark)
        with pytest.raises(StreamingQueryException) as failure:
            query.processAllAvailable()
        # What the supervisor does with a query that ended, and when it tries again.
        assert isinstance(flow.diagnose(failure.value), BatchHeldError)
        with pytest.raises(BatchHeldError):
            flow.start(spark)
        assert DeltaTable(flow.tables.table).count() == 0

        # Another declaration applies the batch that was held.
        warning = HOLDING.model_copy(update={"on_failure": OnFailure.WARN})
        released = SilverFlow(EVENTS, warning, settings, store)
        assert released.definition != flow.definition
        query = released.start(spark)
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        assert released.diagnose(failure.value) is None
        assert DeltaTable(flow.tables.table).count() == 2

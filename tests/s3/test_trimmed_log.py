"""Entries of a log in an object store are found and removed, and the table stays readable."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from spark_jobs.storage import log
from spark_jobs.storage.cleaning import remove_files
from spark_jobs.storage.lake import plain_location
from spark_jobs.storage.log_files import past_entries


def test_what_comes_before_a_checkpoint_is_removed(spark: SparkSession, location: str) -> None:
    place = plain_location(location)
    for version in range(6):
        write_deltalake(place, pa.table({"a": [version]}), mode="append")
        if version in {2, 4}:
            DeltaTable(place).create_checkpoint()
    past = past_entries(location, before=3)
    assert past == [f"_delta_log/{version:020}.json" for version in (0, 1)]
    remove_files(location, past)
    assert past_entries(location, before=3) == []
    assert [one.version for one in log.commits(location)] == [5, 4, 3, 2]
    assert spark.read.format("delta").load(location).count() == 6
    old = spark.read.format("delta").option("versionAsOf", 3).load(location)
    assert sorted(row.a for row in old.collect()) == [0, 1, 2, 3]

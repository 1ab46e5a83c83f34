"""Rows and changed rows in this process, against Spark's own reader of the same table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructField, StructType

from spark_jobs.sinks.changes import Change, net
from spark_jobs.sinks.rows import RowCodec
from spark_jobs.storage import log, tables
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.delta import CHANGE_FEED
from spark_jobs.storage.guard import Policy, enforced
from spark_jobs.storage.reader import arrow_schema, changed_rows, table_rows
from spark_jobs.storage.rows import any_rows, from_arrow, to_arrow

ROWS = """SELECT * FROM VALUES
(1L, 'a', 1.50, TIMESTAMP'2024-05-02 12:00:00.123456', TIMESTAMP_NTZ'2024-05-02 12:00:00',
 DATE'0001-01-01', array(1, 2), named_struct('x', 1), map('k', 1), DOUBLE('NaN')),
(2L, NULL, NULL, TIMESTAMP'0001-01-01 00:00:00', NULL, NULL, NULL, NULL, NULL, -0.0D),
(3L, 'c', 3.00, TIMESTAMP'2300-01-01 00:00:00', NULL, NULL, array(NULL), named_struct('x', NULL),
 NULL, NULL)
AS v(id, name, amount, at, local, day, few, part, pairs, real)"""
COLUMNS = ("id", "name", "amount", "at", "local", "day", "few", "part", "pairs", "real")


Rows = Counter[tuple[str, str]]


class Asked:
    """A session, and whether anybody asked for it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.times = 0

    def __call__(self) -> SparkSession:
        self.times += 1
        return self.spark


@pytest.mark.parametrize(
    ("properties", "needs_spark"),
    [
        pytest.param({}, False, id="plain"),
        pytest.param({"delta.enableDeletionVectors": "true"}, True, id="deletion vectors"),
    ],
)
def test_rows_and_changes_are_those_that_spark_reads(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], needs_spark: bool
) -> None:
    location = str(tmp_path / "a table")
    options = {**CHANGE_FEED, **properties}
    spark.sql(ROWS).coalesce(1).write.format("delta").options(**options).save(location)
    codec = RowCodec(arrow_schema(location, 0, COLUMNS), ("id",))
    asked = Asked(spark)

    def rows(version: int) -> Rows:
        found = table_rows(location, version, COLUMNS, spark=asked)
        return Counter(one for batch in found for one in codec.rows(batch))

    def by_spark(version: int) -> Rows:
        frame = tables.read(spark, location, version)
        return Counter(one for batch in frame.toArrow().to_batches() for one in codec.rows(batch))

    def changes(after: int, upto: int) -> dict[str, Change]:
        found = changed_rows(location, COLUMNS, after=after, upto=upto, spark=asked)
        moves = (
            (key, row, came)
            for batch, flags in found
            for (key, row), came in zip(codec.rows(batch), flags.to_pylist(), strict=True)
        )
        return {one.key: one for one in net("sink", moves)}

    def expected(after: int, upto: int) -> dict[str, Change]:
        return differing(by_spark(after), by_spark(upto))

    at = f"delta.{quoted(location)}"
    spark.sql(f"UPDATE {at} SET name = 'b' WHERE id = 2")
    spark.sql(f"DELETE FROM {at} WHERE id = 3")
    spark.sql(f"INSERT INTO {at} SELECT 4L, name, amount, at, local, day, few, part, pairs, real "
              f"FROM {at} WHERE id = 1")  # fmt: skip
    for version in (0, 3):
        assert rows(version) == by_spark(version)
    assert changes(0, 3) == expected(0, 3)
    assert (asked.times > 0) is needs_spark
    spark.sql(f"RESTORE TABLE {at} TO VERSION AS OF 1")
    newest = log.table_version(location)
    assert newest is not None
    assert changes(2, newest.version) == expected(2, newest.version)


def differing(old: Rows, new: Rows) -> dict[str, Change]:
    """Changes between two tables whose rows are counted by key and row."""
    before, after = dict(old.keys()), dict(new.keys())
    return {
        key: Change(key, before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


@pytest.mark.parametrize("counts", [(2, 0, 3), (0, 4), (3, 0), (0, 0)])
def test_rows_in_pieces_are_all_given_back(spark: SparkSession, counts: tuple[int, ...]) -> None:
    schema = pa.schema({"n": pa.int64()})
    pieces = [pa.table({"n": list(range(count))}, schema=schema) for count in counts]
    found = from_arrow(
        spark, pa.concat_tables(pieces), lambda: StructType([StructField("n", LongType())])
    )
    assert found.columns == ["n"]
    assert found.count() == sum(counts)
    # A table that is joined with no rows is not read.
    joined = spark.range(10).toDF("n").join(found, "n")
    plan = joined._jdf.queryExecution().optimizedPlan().toString()
    assert ("Join" in plan) == (sum(counts) > 0)


def test_a_null_struct_whose_fields_are_never_null_is_fetched(spark: SparkSession) -> None:
    text = (
        "SELECT id, IF(id = 0, NULL, named_struct('a b', 1)) AS s, array(named_struct('x', id)) "
        "AS s FROM range(2) ORDER BY id"
    )
    apart = spark.newSession()
    with enforced(apart, Policy()):
        found = any_rows(apart.sql(text))
    assert found.column_names == ["id", "s", "s"]
    assert [found.column(at).to_pylist() for at in range(3)] == [
        [0, 1],
        [None, {"a b": 1}],
        [[{"x": 0}], [{"x": 1}]],
    ]
    assert any_rows(spark.range(1).selectExpr("id", "id")).num_rows == 1


def test_rows_from_this_process_keep_their_types(spark: SparkSession) -> None:
    """Times without a zone too: as instants, TO_JSON and TYPEOF of them would differ."""
    there = spark.sql(ROWS).coalesce(1).withColumn("locals", sf.array("local"))
    found = from_arrow(spark, to_arrow(there), lambda: there.schema)
    assert found.dtypes == there.dtypes
    text = "SELECT TO_JSON(STRUCT({rows}.*)) AS text FROM {rows} ORDER BY id"
    assert spark.sql(text, rows=found).collect() == spark.sql(text, rows=there).collect()

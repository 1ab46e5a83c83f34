"""Plain tables read by their files, and changed by few rows, against Delta's own reader."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.graph.last_step import DeleteInsert, MergeByKey
from spark_jobs.storage import arrow_tables, log, policy, reader, tables
from spark_jobs.storage.columns import quoted
from spark_jobs.storage.delta import CHANGE_FEED, CHANGE_TYPE, Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.plain import plain_table
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.rows import fetched

BY_KEY = MergeByKey(("id", 'Odd."name'))
COLUMNS = 'id, `Odd."name`, amount, at, local, day, few, part, pairs, real'
ROWS = f"""SELECT * FROM VALUES
(1L, 'a', 1.50, TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999',
 DATE'0001-01-01', array(1, 2), named_struct('x', 1), map('k', 1), DOUBLE('NaN')),
(2L, NULL, NULL, TIMESTAMP'9999-12-31 23:59:59.999999', NULL, DATE'9999-12-31', NULL, NULL, NULL,
 -0.0D),
(NULL, 'c', 3.00, NULL, NULL, NULL, array(NULL), named_struct('x', NULL), NULL, NULL)
AS v({COLUMNS})"""


@pytest.fixture
def location(tmp_path: Path) -> str:
    """Where the table lies: a name that needs quoting."""
    return str(tmp_path / "a b")


def create(spark: SparkSession, location: str, rows: str = ROWS, **options: str) -> None:
    frame = spark.sql(rows).coalesce(1)
    frame.write.format("delta").options(**CHANGE_FEED, **options).save(location)


def texts(frame: DataFrame) -> list[tuple[str, ...]]:
    """The rows in an order, as Spark writes their values; Python has no year 9999 in UTC."""
    names = [quoted(name) for name in frame.columns]
    found = frame.selectExpr(*(f"CAST({name} AS STRING) AS {name}" for name in names)).collect()
    return sorted(tuple(str(value) for value in row) for row in found)


def same(spark: SparkSession, location: str, version: int | None = None) -> None:
    ours, theirs = reader.read(spark, location, version), tables.read(spark, location, version)
    assert texts(ours) == texts(theirs)
    assert ours.dtypes == theirs.dtypes


def change(
    spark: SparkSession,
    location: str,
    *,
    deleted: str = "FALSE",
    inserted: str = "FALSE",
) -> None:
    """Take and put the rows of the test's list for which conditions hold."""
    rows = spark.sql(ROWS)
    table = arrow_tables.open_for_change(location, dict(rows.dtypes), BY_KEY)
    assert table is not None
    arrow_tables.change(
        table,
        deleted=rows.where(deleted).toArrow(),
        inserted=rows.where(inserted).toArrow(),
        step=BY_KEY,
        txn=Txn("test", table.version()),
        metadata={"said": "so"},
    )


def test_few_rows_are_deleted_and_inserted_in_one_commit(
    spark: SparkSession, location: str
) -> None:
    create(spark, location, f"{ROWS} WHERE id IS NOT NULL")
    change(spark, location, deleted="id = 2", inserted="id IS NULL")
    assert texts(tables.read(spark, location)) == texts(
        spark.sql(f"{ROWS} WHERE id IS NULL OR id = 1")
    )
    same(spark, location)
    feed = tables.changes(spark, location, after=0, upto=1).select("id", CHANGE_TYPE)
    assert texts(feed) == [("2", "delete"), ("None", "insert")]
    assert log.transaction_version(location, "test") == 0
    assert log.commits(location, limit=1)[0].metadata == {"said": "so"}


def test_without_a_key_all_copies_of_a_row_are_deleted(spark: SparkSession, location: str) -> None:
    rows = "SELECT * FROM VALUES (1, 'a'), (1, 'a'), (1, NULL), (2, NULL) AS v(n, t)"
    create(spark, location, rows)
    frame = spark.sql(rows)
    table = arrow_tables.open_for_change(location, dict(frame.dtypes), DeleteInsert())
    assert table is not None
    gone = pa.table({"n": pa.array([1, 1], pa.int32()), "t": pa.array(["a", None])})
    none = gone.slice(0, 0)
    arrow_tables.change(
        table, deleted=gone, inserted=none, step=DeleteInsert(), txn=Txn("test", 1), metadata={}
    )
    assert texts(tables.read(spark, location)) == [("2", "None")]


def test_a_change_without_rows_is_a_commit(spark: SparkSession, location: str) -> None:
    create(spark, location)
    change(spark, location)
    assert log.transaction_version(location, "test") == 0
    assert texts(tables.changes(spark, location, after=0, upto=1)) == []
    same(spark, location)


@pytest.mark.parametrize("deleted", ["FALSE", "id = 1"])
def test_no_concurrent_commit_is_lost(spark: SparkSession, location: str, deleted: str) -> None:
    create(spark, location)
    rows = spark.sql(ROWS)
    table = arrow_tables.open_for_change(location, dict(rows.dtypes), BY_KEY)
    assert table is not None
    DeltaTable(location).delete("id = 2")
    with pytest.raises(TableMovedError, match="at the same time"):
        arrow_tables.change(
            table,
            deleted=rows.where(deleted).toArrow(),
            inserted=rows.toArrow(),
            step=BY_KEY,
            txn=Txn("test", 1),
            metadata={},
        )
    assert log.transaction_version(location, "test") is None


def test_a_table_of_few_rows_is_replaced(spark: SparkSession, location: str) -> None:
    for part in ("TRUE", "id = 1", "FALSE"):
        rows = spark.sql(f"{ROWS} WHERE {part}")
        few = fetched(rows)
        assert few is not None
        arrow_tables.replace(few, location, metadata={"part": part})
        assert texts(tables.read(spark, location)) == texts(rows)
        same(spark, location)


def test_more_rows_and_other_types_stay_with_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "RESULT", Limit(rows=10))
    assert fetched(spark.range(11)) is None
    few = fetched(spark.range(10))
    assert few is not None
    assert few.num_rows == 10
    for kind in ("INTERVAL '1' DAY", "NULL", "PARSE_JSON('1')"):
        assert fetched(spark.sql(f"SELECT {kind} AS a, 1 AS b")) is None


def test_few_changes_of_a_large_table_are_read_by_their_files(
    spark: SparkSession, location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(spark, location, f"{ROWS} WHERE id IS NOT NULL")
    spark.sql(f"{ROWS} WHERE id IS NULL").write.format("delta").mode("append").save(location)
    change(spark, location, deleted="id = 2", inserted="id = 1")
    monkeypatch.setattr(policy, "SCANNED", Limit(files=1))
    for after, upto, by_files in ((0, 1, True), (1, 2, True), (0, 2, False)):
        ours = reader.changes(spark, location, after=after, upto=upto)
        theirs = tables.changes(spark, location, after=after, upto=upto)
        commit = ("_commit_version", "_commit_timestamp")
        assert texts(ours.drop(*commit)) == texts(theirs.drop(*commit))
        assert ("_commit_version" not in ours.columns) is by_files


OTHERS = {
    "partitioned": "CREATE TABLE {} (a INT, p INT) USING delta PARTITIONED BY (p)",
    "deletion vectors": "CREATE TABLE {} (a INT) USING delta "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "column mapping": "CREATE TABLE {} (a INT) USING delta "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "variant": "CREATE TABLE {} (a VARIANT) USING delta",
}


@pytest.mark.parametrize("name", OTHERS)
def test_any_other_table_is_left_to_delta(spark: SparkSession, location: str, name: str) -> None:
    spark.sql(OTHERS[name].format(f"delta.{quoted(location)}"))
    assert plain_table(location) is None
    same(spark, location)


def test_a_constraint_is_left_to_spark(spark: SparkSession, location: str) -> None:
    create(spark, location, f"{ROWS} WHERE id = 1")
    spark.sql(f"ALTER TABLE delta.{quoted(location)} ADD CONSTRAINT c CHECK (amount > 0)")
    assert arrow_tables.open_for_change(location, dict(spark.sql(ROWS).dtypes), BY_KEY) is None
    same(spark, location)


def test_floating_point_is_compared_by_spark(spark: SparkSession, location: str) -> None:
    create(spark, location)
    assert (
        arrow_tables.open_for_change(location, dict(spark.sql(ROWS).dtypes), DeleteInsert()) is None
    )
    assert (
        arrow_tables.open_for_change(location, dict(spark.sql(ROWS).dtypes), MergeByKey(("real",)))
        is None
    )


def test_timestamps_in_the_old_form_are_rewritten_by_spark(
    spark: SparkSession, location: str
) -> None:
    """A file of Spark's old form read as nanoseconds would lose year 1."""
    with tables.session_values(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        create(spark, location)
    assert arrow_tables.open_for_change(location, dict(spark.sql(ROWS).dtypes), BY_KEY) is None
    same(spark, location)


HISTORY = (
    "INSERT INTO {} VALUES (4, 'n'), (5, NULL)",
    "UPDATE {} SET t = 'u' WHERE n = 1",
    "DELETE FROM {} WHERE n = 5",
    "OPTIMIZE {}",
    "INSERT OVERWRITE {} VALUES (1, 'u'), (6, 'o')",
    """MERGE INTO {} AS t USING (SELECT 6 AS n) AS s ON t.n = s.n
    WHEN MATCHED THEN UPDATE SET t = 'm' WHEN NOT MATCHED THEN INSERT (n) VALUES (s.n)""",
    "DELETE FROM {}",
    "RESTORE TABLE {} TO VERSION AS OF 2",
)


@pytest.mark.parametrize("vectors", [False, pytest.param(True, marks=pytest.mark.long)])
def test_changes_are_those_of_the_feed(
    spark: SparkSession, location: str, *, vectors: bool
) -> None:
    options = {"delta.enableDeletionVectors": str(vectors).lower()}
    create(
        spark, location, "SELECT * FROM VALUES (1, 'a'), (2, 'b'), (3, NULL) AS v(n, t)", **options
    )
    table = f"delta.{quoted(location)}"
    for statement in HISTORY:
        spark.sql(statement.format(table))
    last = log.table_version(location)
    assert last is not None
    names = ["n", "t", CHANGE_TYPE]
    for after, upto in [*((one, one + 1) for one in range(last.version)), (0, last.version)]:
        ours = reader.changes(spark, location, after=after, upto=upto).select(*names)
        theirs = tables.changes(spark, location, after=after, upto=upto).select(*names)
        assert texts(ours) == texts(theirs), (after, upto)
    for version in (1, last.version):
        same(spark, location, version)

"""Rows that are in this process are written without Spark, by each function of the writer."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException

from spark_jobs.graph.last_step import MergeByKey
from spark_jobs.names import TableVersion
from spark_jobs.storage import log, policy, reader, writer
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.rows import Merge, RowChange, Rows, rows_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = {"id": "bigint", "text": "string"}


class AskedForSparkError(Exception):
    """The rows were requested as a DataFrame."""


def no_spark() -> NoReturn:
    raise AskedForSparkError


def rows(*given: tuple[int, str]) -> Rows:
    table = pa.table(
        {
            "id": pa.array([number for number, _ in given], pa.int64()),
            "text": pa.array([text for _, text in given], pa.string()),
        }
    )
    return rows_here(table, KINDS, no_spark)


@pytest.fixture
def location(tmp_path: Path) -> str:
    found = str(tmp_path / "table")
    writer.replace(rows((1, "a"), (2, "b")), found, metadata={"by": "test"})
    return found


def content(location: str) -> list[tuple[int, str]]:
    found = reader.few_rows(location)
    assert found is not None
    return sorted((row["id"], row["text"]) for row in found.to_pylist())


def whole(location: str) -> list[tuple[int, str]]:
    """The content of a table of any size."""
    found = DeltaTable(location).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["text"]) for row in found)


def seen(location: str) -> TableVersion | None:
    return log.table_version(location)


def change(*, deletes: int | None = 1) -> RowChange:
    return RowChange(
        deleted=rows((1, "a")),
        inserted=rows((1, "c")),
        deletes=deletes,
        inserts=1,
        kinds=KINDS,
        step=MergeByKey(("id",)),
    )


def test_a_table_is_created_and_replaced(location: str) -> None:
    assert content(location) == [(1, "a"), (2, "b")]
    assert log.commits(location, limit=1)[0].metadata == {"by": "test"}
    writer.replace(rows((3, "c")), location, comments={"text": "what it says"})
    assert content(location) == [(3, "c")]
    assert {one.name: one.description for one in log.schema(location)}["text"] == "what it says"


def test_rows_are_appended_once(location: str) -> None:
    for number in (1, 1):
        writer.append(rows((3, "c")), location, txn=Txn("app", number))
    assert content(location) == [(1, "a"), (2, "b"), (3, "c")]
    assert log.transaction_version(location, "app") == 1


def test_rows_follow_the_version_that_they_were_made_for(location: str) -> None:
    writer.append(rows((3, "c")), location, after=0, metadata={"attempt": "a"})
    with pytest.raises(TableMovedError):
        writer.append(rows((4, "d")), location, after=0, metadata={"attempt": "b"})
    assert content(location) == [(1, "a"), (2, "b"), (3, "c")]


def test_rows_are_merged_by_key(location: str) -> None:
    how = Merge(("id",), ("id", "text"), update="TRUE", insert="TRUE")
    writer.merge(rows((2, "x"), (3, "c")), location, how, txn=Txn("app", 1))
    assert content(location) == [(1, "a"), (2, "x"), (3, "c")]


def test_rows_are_deleted_and_inserted(location: str) -> None:
    writer.change(change(), location, seen=seen(location), txn=Txn("app", 1), metadata={"n": 1})
    assert content(location) == [(1, "c"), (2, "b")]
    assert log.commits(location, limit=1)[0].metadata == {"n": 1}


def test_a_change_for_another_version_is_refused(location: str) -> None:
    before = seen(location)
    writer.append(rows((3, "c")), location)
    with pytest.raises(TableMovedError):
        writer.change(change(), location, seen=before, txn=Txn("app", 1), metadata={})
    assert content(location) == [(1, "a"), (2, "b"), (3, "c")]


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table of three files, of which one at a time can be rewritten here."""
    found = str(tmp_path / "large")
    for first in (1, 101, 201):
        some = rows(*((one, "a") for one in range(first, first + 5)))
        write_deltalake(found, some.table, mode="append")
    monkeypatch.setattr(policy, "REWRITTEN", Limit(bytes=log.size(found).bytes // 2))
    return found


def test_the_files_that_may_have_the_keys_are_small_enough(large: str) -> None:
    how = Merge(("id",), ("id", "text"), update="TRUE", insert="TRUE")
    writer.merge(rows((102, "x"), (106, "c")), large, how, txn=Txn("app", 1))
    writer.change(change(), large, seen=seen(large), txn=Txn("app", 2), metadata={})
    found = dict(whole(large))
    assert (len(found), found[1], found[102], found[106]) == (16, "c", "x", "c")
    with pytest.raises(AskedForSparkError):
        writer.merge(rows((2, "x"), (102, "x"), (202, "x")), large, how, txn=Txn("app", 3))


def test_rows_are_inserted_whatever_the_size(large: str) -> None:
    many = RowChange(
        deleted=rows(),
        inserted=rows((300, "c")),
        deletes=0,
        inserts=1,
        kinds=KINDS,
        step=change().step,
    )
    writer.change(many, large, seen=seen(large), txn=Txn("app", 1), metadata={})
    assert dict(whole(large))[300] == "c"


@pytest.mark.parametrize("deletes", [None, 1])
def test_many_rows_or_an_unknown_number_are_changed_by_spark(
    location: str, monkeypatch: pytest.MonkeyPatch, deletes: int | None
) -> None:
    if deletes is not None:
        monkeypatch.setattr(policy, "RESULT", Limit(rows=1))
    with pytest.raises(AskedForSparkError):
        writer.change(
            change(deletes=deletes), location, seen=seen(location), txn=Txn("a", 1), metadata={}
        )


def test_spark_changes_no_version_with_other_rows(location: str) -> None:
    """They would stay, below a publication that does not know them."""
    before = seen(location)
    many = change(deletes=None)
    DeltaTable(location).alter.set_table_properties({"delta.logRetentionDuration": "7 days"})
    with pytest.raises(AskedForSparkError):
        writer.change(many, location, seen=before, txn=Txn("app", 1), metadata={})
    writer.append(rows((3, "c")), location)
    with pytest.raises(TableMovedError):
        writer.change(many, location, seen=before, txn=Txn("app", 1), metadata={})


def test_a_table_that_spark_must_write_is_left_to_it(location: str) -> None:
    features = {"delta.enableDeletionVectors": "true"}
    write_deltalake(location + "-other", rows((1, "a")).table, configuration=features)
    with pytest.raises(AskedForSparkError):
        writer.append(rows((3, "c")), location + "-other")
    # It lacks a column, which Spark fills with NULL.
    lacking = rows_here(pa.table({"id": pa.array([3], pa.int64())}), {"id": "bigint"}, no_spark)
    with pytest.raises(AskedForSparkError):
        writer.append(lacking, location)
    assert DeltaTable(location).version() == 0


@pytest.mark.parametrize(
    ("value", "here"),
    [
        (pa.scalar(Decimal("-1.50")), False),
        (pa.scalar(b"a"), False),
        (pa.scalar(-1), True),
        (pa.scalar(date(2026, 1, 31)), True),
        (pa.scalar("a b/c"), True),
    ],
    ids=["decimal", "binary", "whole", "date", "text"],
)
def test_partitions_that_delta_rs_writes_wrong_are_left_to_spark(
    tmp_path: Path, value: pa.Scalar, here: bool
) -> None:
    location = str(tmp_path / "t")
    row = pa.table({"id": [1], "part": pa.array([value.as_py()], value.type)})
    write_deltalake(location, row.slice(0, 0), partition_by=["part"])
    kinds = {"id": "bigint", "part": "string"}
    given = rows_here(row, kinds, no_spark)
    for write in (
        lambda: writer.append(given, location),
        lambda: writer.replace(given, location, metadata={}),
    ):
        with nullcontext() if here else pytest.raises(AskedForSparkError):
            write()
    assert DeltaTable(location).to_pyarrow_table().to_pylist() == row.to_pylist()[: int(here)]


def test_a_column_that_was_added_later_is_null_in_older_files(tmp_path: Path) -> None:
    location = str(tmp_path / "table")
    write_deltalake(location, pa.table({"a": [1], "b": ["x"]}))
    newer = pa.table({"c": pa.array([True]), "b": ["y"], "a": [2]})
    write_deltalake(location, newer, mode="append", schema_mode="merge")
    found = reader.few_rows(location)
    assert found is not None
    assert sorted(found.to_pylist(), key=lambda row: row["a"]) == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2, "b": "y", "c": True},
    ]


def test_columns_in_another_order_are_left_to_spark(location: str) -> None:
    """delta-rs would keep the order of the table."""
    table = pa.table({"text": ["c"], "id": pa.array([3], pa.int64())})
    with pytest.raises(AskedForSparkError):
        writer.replace(rows_here(table, KINDS, no_spark), location, metadata={})
    other = pa.table({"text": ["c"]})
    writer.replace(rows_here(other, KINDS, no_spark), location, metadata={})
    assert [one.name for one in log.schema(location)] == ["text"]


CONFLICT = (
    "An error occurred while calling o117.sql.\n: io.delta.exceptions.ConcurrentAppendException: "
    "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected. a concurrent WRITE "
    "added data to table delta.`file:/lake/t` committed at version 1.\n\tat io.delta.exceptions"
)


class Conf(dict[str, str]):
    """A session's settings."""

    set = dict.__setitem__

    def unset(self, key: str) -> None:
        del self[key]


@pytest.mark.parametrize("text", [CONFLICT, "[DELTA_METADATA_CHANGED] x", "[DELTA_OTHER] x"])
def test_a_conflict_of_spark_s_commit_is_told_from_other_errors(text: str) -> None:
    class Session:
        conf = Conf()

        def sql(self, _: str) -> NoReturn:
            raise PySparkException(text)

    expected = PySparkException if "OTHER" in text else TableMovedError
    with pytest.raises(expected) as found:
        writer.delete(
            cast("SparkSession", Session()), "/lake/t", "TRUE", txn=Txn("a", 1), metadata={}
        )
    assert "at io.delta" not in str(found.value)

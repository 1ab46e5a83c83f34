from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_jobs.errors import Location
from spark_jobs.testing.errors import CaseTableError
from spark_jobs.testing.inputs import InputTable
from spark_jobs.testing.text_tables import TextTable, read_text_table

HERE = Location("case.yml", 3)
SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string()})


@pytest.fixture
def table(tmp_path: Path) -> InputTable:
    rows = pa.table({"id": [1, 2, 2], "name": ["a", "b", "b"]}, schema=SCHEMA)
    return InputTable(str(tmp_path), SCHEMA, keys=("id",), rows=rows)


def text(words: str) -> TextTable:
    return read_text_table(words, HERE)


def content(location: Path) -> list[tuple[int, str | None]]:
    rows = DeltaTable(location).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["name"]) for row in rows)


def changes(location: Path, version: int) -> list[tuple[str, int]]:
    feed = DeltaTable(location).load_cdf(starting_version=version)
    rows = pa.table(feed.read_all()).to_pylist()
    return sorted((row["_change_type"], row["id"]) for row in rows)


def test_a_step_is_one_commit_whose_feed_has_what_changed(
    table: InputTable, tmp_path: Path
) -> None:
    table.delete(text("name\na"))
    table.update(text("id | name\n2 | c"))
    table.insert(text("id\n3\n3"))
    table.commit()

    assert content(tmp_path) == [(2, "c"), (2, "c"), (3, None), (3, None)]
    assert DeltaTable(tmp_path).version() == 1
    assert changes(tmp_path, 1) == [
        ("delete", 1), ("delete", 2), ("delete", 2),
        ("insert", 2), ("insert", 2), ("insert", 3), ("insert", 3),
    ]  # fmt: skip


def test_equal_rows_come_one_by_one(table: InputTable, tmp_path: Path) -> None:
    table.insert(text("id | name\n2 | b"))
    table.commit()
    assert content(tmp_path) == [(1, "a"), (2, "b"), (2, "b"), (2, "b")]


def test_no_change_is_no_commit(table: InputTable, tmp_path: Path) -> None:
    table.commit()
    assert DeltaTable(tmp_path).version() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param("delete", "id\n9", id="no such row to delete"),
        pytest.param("update", "id | name\n9 | x", id="no such row to update"),
        pytest.param("update", "name\nx", id="no key"),
    ],
)
def test_a_change_of_nothing_is_refused(table: InputTable, change: str, words: str) -> None:
    with pytest.raises(CaseTableError):
        getattr(table, change)(text(words))

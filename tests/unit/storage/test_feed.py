"""Counting a change feed, held against two contents that are compared row by row."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from spark_jobs.graph.maintenance.reach import NO_ROWS, RowsMoved
from spark_jobs.storage import policy
from spark_jobs.storage.feed import change_feed
from spark_jobs.storage.policy import Limit

FED = {"delta.enableChangeDataFeed": "true"}
COLUMNS = ("k", "v", "Weight", "tags")


def rows(keys: Sequence[int]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "v": pa.array([None if key % 3 == 0 else f"v{key % 4}" for key in keys], pa.string()),
            "Weight": pa.array([key / 2 for key in keys], pa.float64()),
            "tags": pa.array([["a"] for _ in keys], pa.list_(pa.string())),
        }
    )


@pytest.fixture
def fed(tmp_path: Path) -> str:
    write_deltalake(str(tmp_path), rows(range(8)), configuration=FED)
    return str(tmp_path)


def content(location: str, version: int, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    found = DeltaTable(location, version=version).to_pyarrow_table(columns=list(columns))
    return Counter(tuple(row.values()) for row in found.to_pylist())


def net(location: str, after: int, upto: int, *columns: str) -> RowsMoved | None:
    found = change_feed(location, after=after, upto=upto, columns=set(columns))
    return None if found is None else found.net(columns)


@pytest.mark.parametrize("seed", range(4))
def test_it_counts_what_a_comparison_of_the_contents_finds(fed: str, seed: int) -> None:
    rng = random.Random(seed)
    for step in range(4):
        write_deltalake(fed, rows([rng.randrange(12) for _ in range(2)]), mode="append")
        key = rng.randrange(12)
        DeltaTable(fed).update(updates={"Weight": f"{step}.5"}, predicate=f"k = {key}")
        DeltaTable(fed).delete(f"k = {rng.randrange(12)}")
    upto = DeltaTable(fed).version()
    for after in (0, 3, upto - 1):
        for columns in (("k",), ("v",), ("Weight",), ("k", "v"), ("k", "v", "Weight")):
            before, now = content(fed, after, columns), content(fed, upto, columns)
            expected = RowsMoved((before - now).total(), (now - before).total())
            assert net(fed, after, upto, *(one.lower() for one in columns)) == expected


def test_an_update_of_another_column_is_no_change(fed: str) -> None:
    DeltaTable(fed).update(updates={"Weight": "7.0"}, predicate="k < 5")
    assert net(fed, 0, 1, "k", "v") == NO_ROWS
    assert net(fed, 0, 1, "k", "weight") == RowsMoved(5, 5)


def test_all_columns_are_compared_if_none_is_named(fed: str) -> None:
    DeltaTable(fed).update(updates={"Weight": "7.0"}, predicate="k < 5")
    flat = change_feed(fed, after=0, upto=1, columns={"k", "weight"})
    assert flat is not None
    assert flat.net(None) == RowsMoved(5, 5)
    whole = change_feed(fed, after=0, upto=1, columns=None)
    assert whole is not None
    assert "tags" in whole.rows.column_names


def test_an_inserted_and_deleted_row_is_no_net_change(fed: str) -> None:
    write_deltalake(fed, rows([99]), mode="append")
    DeltaTable(fed).delete("k = 99")
    assert net(fed, 0, 2, "k") == NO_ROWS
    assert net(fed, 0, 1, "k") == RowsMoved(0, 1)


def test_without_a_column_only_the_number_of_rows_matters(fed: str) -> None:
    DeltaTable(fed).delete("k < 3")
    write_deltalake(fed, rows([50]), mode="append")
    assert net(fed, 0, 2) == RowsMoved(2, 0)
    assert net(fed, 2, 2, "k") == NO_ROWS


def test_there_is_no_result_if_files_alone_are_not_enough(
    fed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(fed, rows([7]), mode="append")
    assert net(fed, 0, 1, "k", "tags") is None, "arrays"
    monkeypatch.setattr(policy, "COUNTED", Limit(rows=0))
    assert net(fed, 0, 1, "k") is None, "too many rows"


def test_deleted_files_give_no_bounds(fed: str) -> None:
    DeltaTable(fed).delete("k < 3")
    for file in (Path(fed) / "_change_data").iterdir():
        file.unlink()
    assert net(fed, 0, 1, "k") is None


def test_a_removed_file_may_lack_a_column_that_was_added_later(fed: str) -> None:
    DeltaTable(fed).alter.add_columns([Field("new", PrimitiveType("string"))])
    DeltaTable(fed).delete()
    assert net(fed, 1, 2, "new", "k") == net(fed, 1, 2, "new") == RowsMoved(8, 0)

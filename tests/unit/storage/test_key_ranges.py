"""Files without any of the keys are not read, and writes by key are those of a dictionary."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from spark_jobs.graph.last_step import DeleteInsert, MergeByKey, RowStep
from spark_jobs.storage import arrow_tables
from spark_jobs.storage.delta import CHANGE_FEED, Txn
from spark_jobs.storage.key_ranges import ranges_of
from spark_jobs.storage.lookup import rows_with_keys
from spark_jobs.storage.rows import Merge

HOW = Merge(("id",), ("id", "value"), update="s.value > t.value", insert="true")
STEPS = pytest.mark.parametrize("step", [DeleteInsert(), MergeByKey(("id",))], ids=str)
FILES, ROWS = 4, 200


def rows(content: dict[int, int]) -> pa.Table:
    return pa.table({"id": pa.array(content, pa.int64()), "value": pa.array(content.values())})


def write(location: Path, *files: dict[int, int]) -> str:
    """A file for each content, in row groups of few rows."""
    small = WriterProperties(max_row_group_size=20)
    for one in files:
        write_deltalake(
            str(location),
            rows(one),
            mode="append",
            configuration=CHANGE_FEED,
            writer_properties=small,
        )
    return str(location)


def content(location: str) -> dict[int, int]:
    found = DeltaTable(location).to_pyarrow_table().to_pylist()
    held = {one["id"]: one["value"] for one in found}
    assert len(held) == len(found)
    return held


def fed(location: str, before: dict[int, int]) -> dict[int, int]:
    """What the change feed of the newest version makes of the content before it."""
    table = DeltaTable(location)
    feed = table.load_cdf(starting_version=table.version(), ending_version=table.version())
    held = dict(before)
    changes = pa.table(feed.read_all()).to_pylist()
    for one in changes:
        if one["_change_type"] in {"delete", "update_preimage"}:
            assert held.pop(one["id"]) == one["value"]
    for one in changes:
        if one["_change_type"] in {"insert", "update_postimage"}:
            assert held.setdefault(one["id"], one["value"]) == one["value"]
    return held


@pytest.fixture
def torn(tmp_path: Path) -> str:
    """Three files, of which nobody can read the second."""
    files = [dict.fromkeys(range(first, first + 10), 1) for first in (0, 100, 200)]
    location = write(tmp_path, *files)
    actions = pa.table(DeltaTable(location).get_add_actions(flatten=True)).to_pylist()
    [middle] = [one["path"] for one in actions if one["min.id"] == 100]
    (tmp_path / middle).unlink()
    return location


def test_a_lookup_leaves_out_files_between_the_keys(torn: str) -> None:
    found = rows_with_keys(torn, pa.table({"id": [3, 205]}), ["id"])
    assert found is not None
    assert sorted(found.column("id").to_pylist()) == [3, 205]
    with pytest.raises(FileNotFoundError):
        rows_with_keys(torn, pa.table({"id": [3, 105, 205]}), ["id"])


def test_a_merge_leaves_out_files_between_the_keys(torn: str) -> None:
    arrow_tables.merge(DeltaTable(torn), rows({3: 2, 205: 2, 300: 2}), HOW, txn=Txn("app", 1))
    found = rows_with_keys(torn, pa.table({"id": [3, 4, 205, 300]}), ["id", "value"])
    assert found is not None
    held = dict(zip(*found.to_pydict().values(), strict=True))
    assert held == {3: 2, 4: 1, 205: 2, 300: 2}


@STEPS
def test_a_change_leaves_out_files_between_the_deleted_rows(torn: str, step: RowStep) -> None:
    arrow_tables.change(
        DeltaTable(torn),
        deleted=rows({3: 1, 205: 1}),
        inserted=rows({3: 2, 150: 2}),
        step=step,
        txn=Txn("app", 1),
        metadata={},
    )
    found = rows_with_keys(torn, pa.table({"id": [3, 4, 150, 205]}), ["id", "value"])
    assert found is not None
    assert dict(zip(*found.to_pydict().values(), strict=True)) == {3: 2, 4: 1, 150: 2}


@STEPS
@pytest.mark.parametrize("seed", range(4))
def test_writes_are_those_of_a_dictionary(tmp_path: Path, step: RowStep, seed: int) -> None:
    rng = random.Random(seed)
    total = FILES * ROWS
    # In each file a range of the keys, or some of all.
    parts = (
        [range(at, total, FILES) for at in range(FILES)]
        if seed % 2
        else [range(at, at + ROWS) for at in range(0, total, ROWS)]
    )
    location = write(tmp_path, *(dict.fromkeys(part, 0) for part in parts))
    held = content(location)
    for number in range(1, 6):
        before = dict(held)
        keys = rng.sample(range(total + 50), rng.randrange(1, 12))
        if rng.random() < 0.5:
            keys = [*range(total - 20, total - 20 + len(keys)), min(keys)]
        new = dict.fromkeys(keys, number)
        if rng.random() < 0.5:
            arrow_tables.merge(DeltaTable(location), rows(new), HOW, txn=Txn("app", number))
        else:
            arrow_tables.change(
                DeltaTable(location),
                deleted=rows({one: held[one] for one in new if one in held}),
                inserted=rows(new),
                step=step,
                txn=Txn("app", number),
                metadata={},
            )
        held |= new
        assert content(location) == held
        assert fed(location, before) == held


def test_ranges_are_of_known_values_that_statistics_bound() -> None:
    assert ranges_of(pa.array([5, None])) is None
    assert ranges_of(pa.array(["a"])) is None
    assert ranges_of(pa.array([], pa.int64())) == []
    assert ranges_of(pa.array([date(1970, 1, 3), date(1970, 1, 1)])) == [(0, 0), (2, 2)]

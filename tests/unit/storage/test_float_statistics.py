"""Files that are written here have no statistics of floating-point numbers: these lack NaN."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.graph.last_step import MergeByKey
from spark_jobs.sections import MaintenanceSettings
from spark_jobs.storage import arrow_tables
from spark_jobs.storage.compaction import join_partition, join_small_files
from spark_jobs.storage.delta import Txn
from spark_jobs.storage.float_bounds import lack_nan
from spark_jobs.storage.rows import Merge

NAN = float("nan")


def rows(*keys: int, real: float = NAN) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "real": pa.array([1.0, real][: len(keys)], pa.float64()),
            "parts": pa.array([{"low": real, "n": 1}] * len(keys)),
            "reals": pa.array([[real]] * len(keys), pa.list_(pa.float32())),
        }
    )


@pytest.fixture
def location(tmp_path: Path) -> str:
    found = str(tmp_path / "table")
    arrow_tables.create(rows(1, 2), found)
    return found


def check(location: str, versions: int) -> None:
    table = DeltaTable(location)
    assert table.version() == versions - 1
    # Keys are there, so that files are still skipped by them.
    actions = pa.table(table.get_add_actions(flatten=True))
    bounds = [one for one in actions.column_names if one.startswith(("min.", "max."))]
    known = {one for one in bounds if actions.column(one).null_count < actions.num_rows}
    assert known == {"min.id", "max.id"}
    for file in table.file_uris():
        group = pq.read_metadata(file).row_group(0)
        held = [group.column(at) for at in range(group.num_columns)]
        assert [one.path_in_schema for one in held if one.statistics] == ["id"]
        assert all(one.compression == "SNAPPY" for one in held)


def test_a_created_table(location: str) -> None:
    check(location, 1)


def test_replaced_rows(location: str) -> None:
    arrow_tables.replace(rows(3, 4), location, metadata={})
    check(location, 2)


def test_appended_rows(location: str) -> None:
    arrow_tables.append(DeltaTable(location), rows(3))
    check(location, 2)


def test_changed_rows(location: str) -> None:
    arrow_tables.change(
        DeltaTable(location),
        deleted=rows(1),
        inserted=rows(3),
        step=MergeByKey(("id",)),
        txn=Txn("app", 1),
        metadata={},
    )
    check(location, 2)


def test_merged_rows(location: str) -> None:
    columns = ("id", "real", "parts", "reals")
    how = Merge(keys=("id",), columns=columns, update="TRUE", insert="TRUE")
    arrow_tables.merge(DeltaTable(location), rows(2, 3), how, txn=Txn("app", 1))
    check(location, 2)


@pytest.mark.parametrize("partition", [None, ("id", "1")])
def test_compacted_rows(tmp_path: Path, partition: tuple[str, str] | None) -> None:
    found, parted = str(tmp_path / "parts"), None if partition is None else ["id"]
    for _ in range(3):
        write_deltalake(found, rows(1, 1), mode="append", partition_by=parted)
    few = MaintenanceSettings(small_files=2)
    if partition is None:
        assert join_small_files(found, few, spark=no_spark) == 1
    else:
        column, value = partition
        assert join_partition(DeltaTable(found), few, column=column, value=value) == 1
    actions = pa.table(DeltaTable(found).get_add_actions(flatten=True))
    bounds = [one for one in actions.column_names if one.startswith(("min.", "max."))]
    known = {one for one in bounds if not actions.column(one).null_count}
    assert known == ({"min.id", "max.id"} if partition is None else set())
    (file,) = DeltaTable(found).file_uris()
    group = pq.read_metadata(file).row_group(0)
    held = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    assert not any(one.statistics for name, one in held.items() if name != "id")
    assert all(one.compression == "SNAPPY" for one in held.values())


def no_spark() -> NoReturn:
    raise AssertionError("delta-rs compacts the table")


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [(["id", "real"], True), (["parts"], True), (["id"], False), (["reals"], False)],
)
def test_files_with_such_statistics_are_found(
    tmp_path: Path, columns: list[str], *, wrong: bool
) -> None:
    """Earlier releases let delta-rs compact files with them."""
    found = str(tmp_path / "parts")
    assert not lack_nan(found)
    for real in (1.0, NAN):
        write_deltalake(found, rows(1, 2, real=real).select(columns), mode="append")
    DeltaTable(found).optimize.compact()
    assert lack_nan(found) is wrong


@pytest.mark.parametrize("torn", [True, False], ids=["torn", "missing"])
def test_a_file_that_cannot_be_read_is_no_such_file(tmp_path: Path, *, torn: bool) -> None:
    found = str(tmp_path / "parts")
    write_deltalake(found, rows(1, 2))
    assert lack_nan(found)
    (file,) = map(Path, DeltaTable(found).file_uris())
    file.write_bytes(b"PAR1") if torn else file.unlink()
    assert not lack_nan(found)


def test_files_without_them_are_left_alone(location: str) -> None:
    arrow_tables.append(DeltaTable(location), rows(3))
    few = MaintenanceSettings(small_files=2)
    assert join_small_files(location, few, spark=no_spark) == 1
    assert not lack_nan(location)

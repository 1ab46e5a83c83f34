"""Which files of a table are no longer needed."""

from __future__ import annotations

import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.state.types import utc_now
from spark_jobs.storage import cleaning, log
from spark_jobs.storage.history import changes_between, readable
from tests.unit.storage.aging import age

NOW = utc_now()
FED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def location(tmp_path: Path) -> str:
    """A table of three files, written ten days ago."""
    place = str(tmp_path / "t")
    write_deltalake(place, pa.table({"k": [1, 2]}), configuration=FED)
    for key in (3, 4):
        write_deltalake(place, pa.table({"k": [key]}), mode="append")
    age(place, 10)
    return place


def past(location: str, days: float) -> frozenset[str]:
    return cleaning.past_files(location, since=NOW - timedelta(days=days), now=NOW)


def test_files_that_are_deleted_meanwhile_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refresh deletes its staged result while its folder is looked through."""
    write_deltalake(tmp_path, pa.table({"k": [1], "part": ["a"]}), partition_by=["part"])
    (tmp_path / "left.parquet").write_bytes(b"PAR1")
    scandir = os.scandir

    def vanished(path: Any) -> Any:
        if not isinstance(path, int) and Path(path).name == "part=a":
            shutil.rmtree(path)
        return scandir(path)

    with monkeypatch.context() as racing:
        racing.setattr(os, "scandir", vanished)
        assert cleaning.stored_files(str(tmp_path)) == {"left.parquet": 4}
    (tmp_path / "part=a").mkdir()
    with monkeypatch.context() as racing:
        racing.setattr(os, "scandir", vanished)
        assert cleaning.last_written(str(tmp_path)) is not None


def test_files_of_the_current_version_are_never_expired(location: str) -> None:
    assert past(location, 0) == frozenset()
    assert past(location, 7) == frozenset()


def test_files_that_left_long_ago_and_their_changes_are_past(location: str) -> None:
    DeltaTable(location).delete("k = 1")
    assert past(location, 7) == frozenset()
    age(location, 3)
    assert past(location, 7) == frozenset()
    age(location, 5)
    found = past(location, 7)
    stored = cleaning.stored_files(location)
    assert len(found) == 2
    assert sum(one.startswith("_change_data/") for one in found) == 1
    assert found < stored.keys()
    assert cleaning.bytes_of(found, stored) == sum(stored[one] for one in found) > 0
    assert past(location, 9) == frozenset()


def test_removing_leaves_the_log_and_every_later_version(location: str) -> None:
    DeltaTable(location).delete("k = 1")
    age(location, 8)
    write_deltalake(location, pa.table({"k": [5]}), mode="append")
    DeltaTable(location).delete("k = 3")
    before = [one.version for one in log.commits(location)]
    cleaning.remove_files(location, past(location, 7))
    assert [one.version for one in log.commits(location)] == before
    assert not readable(location, 2)
    assert readable(location, 3)
    assert readable(location, 5)
    assert changes_between(location, after=3, upto=5).fed
    assert not changes_between(location, after=2, upto=5).fed
    assert sorted(DeltaTable(location).to_pyarrow_table()["k"].to_pylist()) == [2, 4, 5]
    cleaning.remove_files(location, ["gone.parquet"])


def test_an_unreferenced_file_expires_after_the_retention(location: str) -> None:
    Path(location, "part-0-left.parquet").write_bytes(b"half a file")
    assert past(location, 7) == frozenset()
    age(location, 8)
    assert past(location, 7) == {"part-0-left.parquet"}


def test_a_table_whose_files_hold_more_than_rows_is_left_alone(location: str, tmp_path) -> None:
    assert cleaning.cleanable(location)
    assert not cleaning.cleanable(str(tmp_path / "nothing"))
    other = shutil.copytree(location, tmp_path / "other")
    first = other / "_delta_log" / f"{0:020}.json"
    text = first.read_text()
    assert '"minReaderVersion": 1' in text
    first.write_text(
        text.replace(
            '"minReaderVersion": 1',
            '"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]',
        ).replace(
            '"minWriterVersion": 4',
            '"minWriterVersion": 7, "writerFeatures": ["deletionVectors", "changeDataFeed"]',
        )
    )
    assert not cleaning.cleanable(str(other))

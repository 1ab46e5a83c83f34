"""What is kept of a log in this process is never older than the log."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.gold.engine.database import Duck
from spark_jobs.storage import log


def versions(location: str) -> list[int]:
    return [one.version for one in log.commits(location, limit=20)]


def test_commits_are_those_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location = str(tmp_path / "t")
    assert versions(location) == []
    for number in range(3):
        write_deltalake(location, pa.table({"a": [number]}), mode="append")
        assert versions(location) == list(range(number, -1, -1))
    assert [one.version for one in log.commits(location, limit=1)] == [2]
    assert len(log.commits(location)) == 3
    asked: list[int | None] = []
    history = DeltaTable.history

    def counted(table: DeltaTable, limit: int | None = None) -> list[dict[str, object]]:
        asked.append(limit)
        return history(table, limit)

    monkeypatch.setattr(DeltaTable, "history", counted)
    assert versions(location) == [2, 1, 0]
    assert asked == [], "the log is as it was read"
    write_deltalake(location, pa.table({"a": [3]}), mode="append")
    assert versions(location) == [3, 2, 1, 0]
    assert asked == [20]


def test_a_table_that_is_recreated_is_another(tmp_path: Path) -> None:
    location = str(tmp_path / "t")

    def make(values: pa.Array) -> None:
        shutil.rmtree(location, ignore_errors=True)
        write_deltalake(location, pa.table({"a": values}))
        [file] = Path(location).glob("*.parquet")
        # As a writer would have it that numbers its files.
        named = Path(location, "part-0.parquet")
        [commit] = Path(location, "_delta_log").glob("*.json")
        text = commit.read_text().replace(file.name, named.name)
        file.rename(named)
        commit.unlink()
        commit.write_text(text)
        os.utime(commit, ns=(1, 1))

    with Duck(memory="100 MiB", spill=tmp_path / "spill") as duck:
        for values in (pa.array([1, 2], pa.int64()), pa.array(["x"], pa.string())):
            make(values)
            assert duck.content("t", location)
            assert duck.fetch("SELECT a FROM t").column("a").to_pylist() == values.to_pylist()
            [commit] = log.commits(location, limit=20)
            assert commit.version == 0


def test_a_filter_keeps_nan_which_the_statistics_of_a_file_leave_out(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    write_deltalake(location, pa.table({"f": [1.0, float("nan")]}))
    with Duck(memory="100 MiB", spill=tmp_path / "spill") as duck:
        assert duck.content("t", location)
        assert len(duck.fetch("SELECT f FROM t WHERE f > 5")) == 1

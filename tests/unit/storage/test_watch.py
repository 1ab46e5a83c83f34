"""Looking often at tables: the answer is always the log's, and the log is rarely read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.storage import log, watch
from spark_jobs.storage.watch import LogWatch

ROWS = pa.table({"k": [1]})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that were read."""
    found: list[str] = []
    table_version = log.table_version

    def counted(location: str):
        found.append(location)
        return table_version(location)

    monkeypatch.setattr(watch.log, "table_version", counted)
    return found


def test_an_unchanged_log_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    location, looking = str(tmp_path / "table"), LogWatch()
    assert [looking.version(location), looking.version(location)] == [None, None]
    for version in range(3):
        write_deltalake(location, ROWS, mode="append")
        before = len(reads)
        seen = [looking.version(location) for _ in range(5)]
        assert {one.version for one in seen} == {version}
        assert len(reads) == before + 1


@pytest.mark.parametrize("commits", [1, 2, 3])
def test_another_table_at_the_same_place_is_another_table(tmp_path: Path, commits: int) -> None:
    location, looking = str(tmp_path / "table"), LogWatch()
    for _ in range(2):
        write_deltalake(location, ROWS, mode="append")
    before = looking.version(location)
    shutil.rmtree(location)
    for _ in range(commits):
        write_deltalake(location, ROWS, mode="append")
    after = looking.version(location)
    assert after == log.table_version(location)
    assert after.table_id != before.table_id
    shutil.rmtree(location)
    assert looking.version(location) is None


def test_a_commit_during_the_look_shows_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, looking, table_version = str(tmp_path / "table"), LogWatch(), log.table_version
    write_deltalake(location, ROWS)

    def slow(place: str):
        found = table_version(place)
        monkeypatch.setattr(watch.log, "table_version", table_version)
        write_deltalake(location, ROWS, mode="append")
        return found

    monkeypatch.setattr(watch.log, "table_version", slow)
    assert [looking.version(location).version for _ in range(3)] == [0, 1, 1]

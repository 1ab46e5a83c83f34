"""The newest version in a log on this machine, however many commits it has or has lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.storage import log_files
from spark_jobs.storage.log_files import newest_version, past_entries

ROWS = pa.table({"a": [1]})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A table of versions 0 to 5, with checkpoints at 2 and 4."""
    for version in range(6):
        write_deltalake(tmp_path, ROWS, mode="append")
        if version in {2, 4}:
            DeltaTable(tmp_path).create_checkpoint()
    return tmp_path


def test_the_newest_version_is_that_of_the_last_commit(place: Path, tmp_path: Path) -> None:
    assert newest_version(str(place)) == 5
    (place / "_delta_log/_last_checkpoint").unlink()
    assert newest_version(str(place)) == 5
    assert newest_version(str(tmp_path / "nothing")) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 3}', '{"version": null}'])
def test_a_last_checkpoint_that_says_something_else_is_no_problem(place: Path, text: str) -> None:
    (place / "_delta_log/_last_checkpoint").write_text(text)
    for version in (0, 1, 2, 3):
        (place / f"_delta_log/{version:020}.json").unlink()
    assert newest_version(str(place)) == 5


@pytest.mark.parametrize(
    ("before", "versions", "checkpoints"),
    [(-1, [], 0), (1, [], 0), (2, [0, 1], 0), (3, [0, 1], 0), (5, [0, 1, 2, 3], 1)],
)
def test_what_comes_before_the_checkpoint_of_a_version_is_past(
    place: Path, before: int, versions: list[int], checkpoints: int
) -> None:
    past = past_entries(str(place), before=before)
    assert [one for one in past if one.endswith(".json")] == [
        f"_delta_log/{version:020}.json" for version in versions
    ]
    assert sum("checkpoint" in one for one in past) == checkpoints
    for one in past:
        (place / one).unlink()
        # Whoever opens the table meanwhile finds no gap.
        assert DeltaTable(place).version() == 5
    assert DeltaTable(place).to_pyarrow_table().num_rows == 6
    assert past_entries(str(place), before=before) == []


def test_of_many_checkpoints_the_newest_stay_and_some_older_ones(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "_APART", 6)
    for version in range(6, 21):
        write_deltalake(place, ROWS, mode="append")
        if version % 2 == 0:
            DeltaTable(place).create_checkpoint()
    for past in past_entries(str(place), before=5):
        (place / past).unlink()
    left = sorted(int(one.name[:20]) for one in (place / "_delta_log").glob("*.checkpoint.parquet"))
    # 4 is what version 5 is read from.
    assert left == [4, 10, 16, 18, 20]
    for version in (5, 9, 13, 20):
        assert DeltaTable(place, version=version).to_pyarrow_table().num_rows == version + 1
    assert past_entries(str(place), before=5) == []


def test_other_files_of_the_log_stay(place: Path) -> None:
    log = place / "_delta_log"
    for name in (f"{1:020}.{3:020}.compacted.json", "_commits", "notes.json"):
        (log / name).touch()
    assert len(past_entries(str(place), before=5)) == 5

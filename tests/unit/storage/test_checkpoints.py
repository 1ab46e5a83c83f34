"""A checkpoint from which a query cannot continue is reported, with the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.storage.checkpoints import damage, newest_checkpoint, newest_epoch
from spark_jobs.storage.lake import Lake

FILES = {
    "metadata": '{"id":"9b1deb4d"}',
    "offsets/0": 'v1\n{"batchTimestampMs":1}\n{"t":{"0":5}}',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
    "offsets/1": 'v1\n{"batchTimestampMs":2}\n{"t":{"0":9}}',
}


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_batch_that_was_cut_off_is_no_damage(checkpoint: Path) -> None:
    assert damage(str(checkpoint)) is None


def test_nothing_planned_is_no_damage(tmp_path: Path) -> None:
    assert damage(str(tmp_path / "none")) is None


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(lambda path: path.write_text(""), id="empty"),
        pytest.param(lambda path: path.write_text(path.read_text()[:-2]), id="cut"),
    ],
)
def test_a_torn_file_is_named(checkpoint: Path, file: str, harm: Callable[[Path], object]) -> None:
    harm(checkpoint / file)
    assert damage(str(checkpoint)) == f"{checkpoint / file} is not whole"


@pytest.mark.parametrize("file", ["metadata", "offsets/0"])
def test_a_missing_file_is_named(checkpoint: Path, file: str) -> None:
    (checkpoint / file).unlink()
    assert damage(str(checkpoint)) == f"{checkpoint / file} is missing"


def test_an_epoch_is_read_from_its_checkpoint_or_a_file_beside_it(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert newest_epoch(lake, "bronze.orders") == 1
    checkpoints = Path(lake.checkpoints("bronze.orders"))
    (checkpoints / "2").mkdir(parents=True)
    (checkpoints / "1.topic.json").touch()
    assert newest_epoch(lake, "bronze.orders") == 2
    (checkpoints / "10.start.json").touch()
    assert newest_epoch(lake, "bronze.orders") == 10
    assert newest_checkpoint(lake, "bronze.orders") == str(checkpoints / "10")

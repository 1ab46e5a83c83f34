"""Other accounts of the machine read gold, write nothing, and see nothing else."""

from __future__ import annotations

import inspect
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.names import Layer, TableName
from spark_jobs.sections import SecuritySettings
from spark_jobs.storage import arrow_tables
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.rights import (
    DIRECTORIES,
    FILES,
    close_state,
    private_files,
    restrict,
    usual_rights,
)

NOBODY = 65534
GOLD = SecuritySettings().readable


@pytest.fixture
def lake() -> Iterator[Lake]:
    """A lake that every account can come to."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield Lake(str(folder / "lake"))
    shutil.rmtree(folder)


def modes(lake: Lake) -> dict[str, int]:
    """The rights of others on each folder."""
    return {one.name: stat.S_IMODE(one.stat().st_mode) & 0o007 for one in Path(lake.root).iterdir()}


def test_only_gold_is_open_and_every_folder_is_there(lake: Lake) -> None:
    restrict(lake, readable=GOLD)
    found = modes(lake)
    assert found.pop("gold") == 0o005
    assert set(found) == {*lake.folders} - {"gold"}
    assert set(found.values()) == {0}


def test_a_folder_that_was_open_is_closed_and_one_that_may_be_read_is_opened(lake: Lake) -> None:
    for name in ("bronze", "silver", "_quarantine"):
        Path(lake.root, name).mkdir(parents=True)
        Path(lake.root, name).chmod(0o777)
    restrict(lake, readable=(Layer.GOLD, Layer.SILVER))
    found = modes(lake)
    assert (found["bronze"], found["_quarantine"]) == (0, 0)
    assert found["silver"] == 0o007, "what others may do beyond reading is the owner's to say"
    restrict(lake, readable=GOLD)
    assert modes(lake)["silver"] == 0


def test_every_place_lies_in_one_of_the_folders() -> None:
    """A new kind of file would else be open to everybody."""
    lake = Lake("/lake")
    places = [lake.location(TableName(layer, "t")) for layer in Layer]
    for name, method in inspect.getmembers(lake, inspect.ismethod):
        takes = inspect.signature(method).parameters
        if name.startswith("_") or name == "location":
            continue
        places.append(
            method(**{one: "x" if one not in {"epoch", "number"} else 1 for one in takes})
        )
    folders = {place.split("/")[2] for place in places} | {"_locks"}
    assert folders == {*lake.folders}


def test_a_store_is_left_to_its_policies() -> None:
    restrict(Lake("s3a://bucket/lake"), readable=GOLD)
    assert not Path("s3a:").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_account_reads_gold_and_is_denied_the_rest(lake: Lake) -> None:
    restrict(lake, readable=GOLD)
    rows = pa.table({"a": [1]})
    for layer in Layer:
        write_deltalake(lake.location(TableName(layer, "t")), rows)
    gold, silver, bronze = (Path(lake.location(TableName(one, "t"))) for one in reversed(Layer))
    file = next(gold.glob("*.parquet"))
    log = Path("_delta_log", f"{0:020}.json")
    assert as_nobody(file.read_bytes) == "done"
    assert as_nobody((gold / log).read_text) == "done"
    assert as_nobody((silver / log).read_text) == "PermissionError"
    assert as_nobody((bronze / log).read_text) == "PermissionError"
    assert as_nobody(lambda: list(Path(lake.root, "_quarantine").iterdir())) == "PermissionError"
    assert as_nobody(lambda: file.write_bytes(b"x")) == "PermissionError"
    assert as_nobody(file.unlink) == "PermissionError"
    assert as_nobody((gold / "_delta_log" / f"{1:020}.json").touch) == "PermissionError"
    assert as_nobody(lambda: restrict(lake, readable=tuple(Layer))) == "done"
    assert modes(lake)["bronze"] == 0, "and it cannot open the folders"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_what_a_private_process_writes_into_gold_can_be_read(lake: Lake) -> None:
    gold = lake.location(TableName(Layer.GOLD, "t"))
    rows = pa.table({"a": [1]})
    with private_files():
        restrict(lake, readable=GOLD)
        table = arrow_tables.create(rows, gold)
        arrow_tables.append(table, rows)
        beside = Path(lake.root).with_name("beside")
        beside.touch()
    files = [one for one in Path(gold).rglob("*") if one.is_file()]
    assert len(files) == 4
    assert {as_nobody(one.read_bytes) for one in files} == {"done"}
    assert as_nobody(beside.read_bytes) == "PermissionError"


def test_the_process_has_its_own_mask_again_once_the_last_writer_is_done() -> None:
    first, second = usual_rights(), usual_rights()
    with private_files():
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert mask() == 0o022
        second.__exit__(None, None, None)
        assert mask() == 0o077


def mask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_account_is_denied_what_the_stack_keeps_beside_the_lake(lake: Lake) -> None:
    """Also what an earlier release left open."""
    state = Path(lake.root).parent
    for name in ("kafka", "spark-local"):
        (state / name).mkdir(mode=0o755)
        (state / name / "segment").touch(mode=0o644)
    for name in FILES:
        (state / name).touch(mode=0o644)
    close_state(state)
    restrict(lake, readable=GOLD)
    assert {one.name for one in state.iterdir()} == {*DIRECTORIES, *FILES, "lake"}
    closed = [state / name for name in (*DIRECTORIES, *FILES)]
    assert {stat.S_IMODE(one.stat().st_mode) & 0o077 for one in closed} == {0}
    for name in FILES:
        assert as_nobody((state / name).read_bytes) == "PermissionError"
    assert as_nobody((state / "kafka" / "segment").read_bytes) == "PermissionError"
    assert as_nobody(lambda: list(Path(lake.root, "gold").iterdir())) == "done"


def test_a_new_state_directory_can_be_gone_through(tmp_path: Path) -> None:
    with private_files():
        close_state(tmp_path / "state", makes=())
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o755


def as_nobody(act: Callable[[], object]) -> str:
    """What came of something that another account does: ``done``, or an error's name."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            act()
            said = "done"
        except OSError as error:
            said = type(error).__name__
        os.write(there, said.encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text

"""How much of bronze a silver table holds, whatever its stream was doing when it stopped."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry
from spark_jobs.silver.check.progress import applied_version, last_written, replaced
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.lake import Lake

APP = "silver/clicks/1"
ENTRY = SilverEntry(
    name="clicks",
    source="clicks",
    sql="",
    projection="SELECT event_id FROM source AS source",
    columns=(Column(name="event_id", type="string"),),
    apply=ApplyMode.APPEND,
    event_id="event_id",
    file="sql/silver/clicks.sql",
    fingerprint="1",
)
ROWS = pa.table({"event_id": ["a"]})


@pytest.fixture
def tables(tmp_path: Path) -> SilverTables:
    found = SilverTables.of(Lake(str(tmp_path / "lake")), ENTRY)
    for place in found.places:
        write_deltalake(place, ROWS.schema.empty_table())
    return found


def batch(
    checkpoint: Path, number: int, *, version: int, index: int = -1, ends: bool, **others: str
) -> None:
    offset = {"reservoirVersion": version, "index": index, **others}
    for folder, wanted in (("offsets", True), ("commits", ends)):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
        if wanted:
            (checkpoint / folder / str(number)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")


def write(place: str, number: int) -> None:
    properties = CommitProperties(app_transactions=[Transaction(APP, number)])
    write_deltalake(place, ROWS, mode="append", commit_properties=properties)


def found(tables: SilverTables, checkpoint: Path, *recorded: int) -> int | None:
    return applied_version(
        tables, str(checkpoint), app_id=APP, recorded=lambda one: one in recorded
    )


def test_between_two_batches(tables: SilverTables, tmp_path: Path) -> None:
    assert found(tables, tmp_path) == -1
    batch(tmp_path, 0, version=3, ends=True)
    write(tables.table, 0)
    assert found(tables, tmp_path, 0) == 2
    assert last_written(tables, APP) == 0


def test_a_batch_that_waits_or_has_just_ended(tables: SilverTables, tmp_path: Path) -> None:
    batch(tmp_path, 0, version=3, ends=True)
    batch(tmp_path, 1, version=5, ends=False)
    assert found(tables, tmp_path, 0) == 2
    write(tables.quarantine, 1)
    assert found(tables, tmp_path, 0, 1) == 4


@pytest.mark.parametrize("place", ["table", "quarantine"])
def test_a_batch_that_was_cut_off(tables: SilverTables, tmp_path: Path, place: str) -> None:
    batch(tmp_path, 0, version=3, ends=True)
    batch(tmp_path, 1, version=5, ends=False)
    write(getattr(tables, place), 1)
    assert found(tables, tmp_path, 0) is None


def test_an_unclear_position_is_none(tables: SilverTables, tmp_path: Path) -> None:
    # A part of a version, and a stream that starts over under a table that has rows.
    batch(tmp_path, 0, version=3, index=7, ends=True)
    assert found(tables, tmp_path, 0) is None
    write(tables.table, 0)
    assert found(tables, tmp_path / "new") is None


@pytest.mark.parametrize(
    ("version", "index", "told"),
    [
        (2, -1, None),
        (1, 5, None),
        (2, 0, "checkpoint ends at version 2 of bronze, which has 1"),
        (3, -1, "checkpoint ends at version 2 of bronze, which has 1"),
    ],
)
def test_a_bronze_table_without_versions_that_were_read_was_replaced(
    tmp_path: Path, version: int, index: int, told: str | None
) -> None:
    bronze, checkpoint = str(tmp_path / "bronze"), tmp_path / "checkpoint"
    assert replaced(bronze, str(checkpoint)) is None
    for _ in range(2):
        write_deltalake(bronze, ROWS, mode="append")
    known = str(DeltaTable(bronze).metadata().id)
    assert replaced(bronze, str(checkpoint)) is None
    batch(checkpoint, 0, version=version, index=index, ends=True, reservoirId=known)
    assert replaced(bronze, str(checkpoint)) == told
    batch(checkpoint, 1, version=version, index=index, ends=False, reservoirId="another")
    assert replaced(bronze, str(checkpoint)) == "bronze was created again"

"""A database whose log begins again at lower positions is refused before its snapshot."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.graph.manifest import ApplyMode
from spark_jobs.names import TableName
from spark_jobs.serving.project import current_manifest
from spark_jobs.settings import load_settings
from spark_jobs.silver.errors import DatabaseUnreachableError, SourceLogBehindError
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.storage.checkpoints import write_text
from spark_jobs.storage.lake import Lake
from tests.golden.declaration_cases import write_project

REACHED = 0x1_0000_0050
ROWS = pa.table(
    {"__sequence": [f"{REACHED:020d}.{REACHED + 1:020d}.2.0000000001"], "order_id": [1]}
)
RESNAPSHOT = ("source", "resnapshot")
NOWHERE = "postgresql://x@127.0.0.1:1/shop"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose table of orders has a change at ``REACHED``."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", NOWHERE)
    root = write_project(tmp_path / "project", {})
    settings = load_settings(root)
    entry = current_manifest(settings).silver["orders"]
    assert entry.apply is not ApplyMode.APPEND
    tables = SilverTables.of(Lake(settings.lake), entry)
    for place in tables.places:
        write_deltalake(place, ROWS if place == tables.table else ROWS.schema.empty_table())
    return root


def resnapshot(project: Path) -> str:
    words = ["--project", str(project), *RESNAPSHOT]
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


def at(monkeypatch: pytest.MonkeyPatch, position: int) -> None:
    monkeypatch.setattr("spark_jobs.silver.check.log_position.log_position", lambda _: position)


def test_a_log_behind_the_changes_of_a_table(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, REACHED - 1)
    with pytest.raises(SourceLogBehindError) as refused:
        resnapshot(project)
    assert (refused.value.position, refused.value.reached) == ("1/4F", "1/50")
    assert refused.value.table == "silver.orders"


def land(project: Path, *records: bytes | None) -> None:
    """Records of orders in bronze, which silver has not applied."""
    lake, name = Lake(load_settings(project).lake), "bronze.orders"
    rows = {
        "partition": pa.array([0] * len(records), pa.int32()),
        "offset": pa.array(range(len(records)), pa.int64()),
        "value": pa.array(records, pa.binary()),
    }
    write_deltalake(lake.location(TableName.parse(name)), pa.table(rows))
    ends = json.dumps({"shop.public.orders": {"0": len(records)}})
    for kind, text in (("offsets", f'v1\n{{"batchTimestampMs": 1}}\n{ends}'), ("commits", "v1")):
        write_text(f"{lake.checkpoint(name, 1)}/{kind}/0", text)


@pytest.mark.parametrize("command", [RESNAPSHOT, ("status", "--check")])
def test_records_that_silver_has_not_applied_count_too(
    project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """The last one has no position: it marks a deletion."""
    sequence = json.dumps([str(REACHED), str(REACHED + 0x10)])
    change = {"op": "d", "source": {"lsn": REACHED + 0x10, "sequence": sequence}}
    land(project, b"no change", json.dumps(change).encode(), None)
    at(monkeypatch, REACHED + 8)
    monkeypatch.setattr("spark_jobs.access.source_log.log_position", lambda _: REACHED + 8)
    words = ["--project", str(project), *command]
    done = CliRunner().invoke(app, words)
    told = f"{done.output}{done.exception}"
    assert done.exit_code == 1
    assert "1/58" in told
    assert "1/60" in told
    assert "bronze" in told


def test_a_log_that_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, REACHED)
    assert "Nothing was done" in resnapshot(project)


def test_tables_that_were_never_written(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(project)
    shutil.rmtree(settings.lake)
    at(monkeypatch, 1)
    assert "Nothing was done" in resnapshot(project)


def test_a_database_that_is_away(project: Path) -> None:
    with pytest.raises(DatabaseUnreachableError):
        resnapshot(project)

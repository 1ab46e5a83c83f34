"""The hidden tables of aggregate state are cleaned up while refreshes append to them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.compute.aggregate_state import sweep_groups
from spark_jobs.graph.compile import compile_project
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from tests.golden.declaration_cases import RIGHT, write_project

VIEW = "spend"
ROW = pa.table({"n": [1]})


@pytest.fixture(scope="module")
def appended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose newest version is 149."""
    place = tmp_path_factory.mktemp("appended") / "0"
    write_deltalake(place, ROW, configuration={"delta.checkpointInterval": "10"})
    table = DeltaTable(place)
    for _ in range(149):
        write_deltalake(table, ROW, mode="append")
    return place


@pytest.mark.parametrize("last", [99, 100])
def test_the_log_of_a_state_keeps_its_newest_versions(
    tmp_path: Path, appended: Path, last: int
) -> None:
    root = write_project(tmp_path / "project", RIGHT)
    settings = load_settings(root, state_dir=tmp_path / "state", maintenance={"log_commits": 100})
    manifest = compile_project(root)
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        context = GoldContext(settings, manifest, store)
        fingerprint = context.entry(VIEW).fingerprint
        place = Path(context.lake.states(VIEW, fingerprint), "0")
        old = Path(context.lake.states(VIEW, "earlier"), "0")
        write_deltalake(old, ROW)
        shutil.copytree(appended, place)
        for _ in range(last - 99):
            write_deltalake(place, ROW, mode="append")
        sweep_groups(context, VIEW)
    assert not old.exists()
    names = [one.name for one in (place / "_delta_log").iterdir()]
    oldest = min(int(name[:20]) for name in names if name.endswith(".json"))
    # Version 50 is read from the checkpoint of 49. Only every fiftieth version cleans up.
    assert oldest == (49 if last == 100 else 0)
    assert DeltaTable(place).to_pyarrow_table().num_rows == 51 + last

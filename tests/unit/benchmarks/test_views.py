"""The project with many views, and the page of what it costs."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from benchmarks.many_dags import RUN_VIEWS, AirflowCost, write_inputs
from benchmarks.many_views import TABLES, write_project
from benchmarks.views import COMMANDS, Measured, page
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import TableName
from spark_jobs.settings import load_settings
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.lake import Lake


def test_the_project_compiles_and_has_views_over_views(tmp_path: Path) -> None:
    write_project(tmp_path, 12)
    manifest = compile_project(tmp_path)
    assert (len(manifest.silver), len(manifest.gold)) == (TABLES, 12)
    assert {entry.tier for entry in manifest.gold.values()} == {0, 1}
    assert all(entry.maintenance for entry in manifest.gold.values())


def test_the_page_says_what_a_view_adds() -> None:
    small, large = (
        Measured(
            views=views,
            commands=dict.fromkeys(COMMANDS, 1 + views / 100),
            manifest_bytes=4_000 * views,
            airflow=AirflowCost(first=views / 10, later=views / 50, rest=3, run=0.5),
            load=0.5,
        )
        for views in (100, 1_000)
    )
    text = page(small, large)
    assert "| `plan` | 2.0 | 11.0 | 10.0 |" in text
    assert "| Airflow reads the DAG files for the first time | 10.0 | 100.0 | 100.0 |" in text
    assert "| a minute of Airflow at rest | 3.0 | 3.0 | 0.0 |" in text
    assert "| a run that finds nothing to do | 0.5 | 0.5 | 0.0 |" in text
    assert "The manifest has 4.0 MB." in text


def test_the_views_that_are_run_have_inputs_with_a_row(tmp_path: Path) -> None:
    write_project(tmp_path, 12)
    settings = load_settings(tmp_path, state_dir=tmp_path / "state", lake_root="", control_db="")
    compile_settings(settings)
    write_inputs(settings)
    manifest, lake = Manifest.read(settings.manifest_file), Lake(settings.lake)
    for view in RUN_VIEWS:
        places = [lake.location(TableName.parse(one)) for one in manifest.gold[view].inputs]
        assert [DeltaTable(one).to_pyarrow_table().num_rows for one in places] == [1]

"""The project with many views, and the page of what it costs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.many_views import TABLES, write_project
from benchmarks.views import COMMANDS, AirflowCost, Measured, page
from spark_jobs.graph.compile import compile_project


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
            airflow=AirflowCost(first=views / 10, later=views / 50, rest=3),
            load=0.5,
        )
        for views in (100, 1_000)
    )
    text = page(small, large)
    assert "| `plan` | 2.0 | 11.0 | 10.0 |" in text
    assert "| Airflow reads the DAG files for the first time | 10.0 | 100.0 | 100.0 |" in text
    assert "| a minute of Airflow at rest | 3.0 | 3.0 | 0.0 |" in text
    assert "The manifest has 4.0 MB." in text

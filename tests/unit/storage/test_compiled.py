"""The manifest as those see it who run for weeks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.errors import SettingError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import load_settings
from spark_jobs.storage import in_force
from spark_jobs.storage.compiled import inspect_settings
from spark_jobs.storage.in_force import current_manifest, put_manifest


def test_it_is_read_again_when_it_was_recompiled(tmp_path: Path) -> None:
    path, first = tmp_path / "manifest.json", Manifest(project="first")
    current = current_manifest(path, first)
    assert current() is first
    Manifest(project="second").write(path)
    second = current()
    assert second.project == "second"
    assert current() is second
    path.write_text("{")
    assert current() is second
    Manifest(project="third").write(path)
    assert current().project == "third"
    path.unlink()
    assert current().project == "third"


def test_airflow_reads_its_dag_files_when_the_manifest_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(tmp_path, state_dir=tmp_path)
    monkeypatch.setattr(in_force, "DAG_FILES", tmp_path / "dags")
    # Files of an image, or of another account.
    put_manifest(settings, Manifest(project="first"))
    file = tmp_path / "dags/gold.py"
    file.parent.mkdir()
    file.write_text("")
    os.utime(file, (1, 1))
    put_manifest(settings, Manifest(project="first"))
    assert file.stat().st_mtime == 1
    before = time.time()
    put_manifest(settings, Manifest(project="second"))
    # Airflow compares this with the end of its last reading.
    assert file.stat().st_mtime >= before - 0.1
    assert Manifest.read(settings.manifest_file).project == "second"


@pytest.mark.parametrize("columns", ["", "columns: {id: BIGINT}\n"])
def test_a_table_that_delta_rs_would_look_for_elsewhere_is_refused(
    tmp_path: Path, columns: str
) -> None:
    """Its log cannot be read, which says nothing about the reason."""
    write_deltalake(tmp_path / "data/with blank", pa.table({"id": [1]}))
    (tmp_path / "sources").mkdir()

    def problems(location: str) -> list[str | None]:
        text = f'format: delta\nlocation: "{location}"\n{columns}'
        (tmp_path / "sources/events.yml").write_text(text)
        found = inspect_settings(load_settings(tmp_path))[1]
        assert {one.condition for one in found} <= {"UNEXPECTED_VALUE"}
        return [one.primary for one in found]

    assert problems("data/with blank") == []
    assert problems(f"file://{tmp_path}/data/with%20blank") == []
    (told,) = problems("data/with%20blank")
    assert told is not None
    assert "'%20'" in told
    # So is a folder that really has this name.
    assert problems(f"file://{tmp_path}/data/a%2520b")


def test_a_lake_that_delta_rs_would_look_for_elsewhere_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "a b"
    project.mkdir()

    def problems(**changed: object) -> list[str]:
        settings = load_settings(project, **changed)
        found = inspect_settings(settings)[1]
        return [one.key for one in found if isinstance(one, SettingError)]

    assert problems() == problems(lake_root="s3a://lake/a%20b") == problems(lake_root="x%y") == []
    assert problems(lake_root="x%20y") == ["lake_root"]
    assert problems(state_dir=tmp_path / "x%2Fy") == ["state_dir"]

"""The manifest as those see it who run for weeks."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.graph.manifest import Manifest
from spark_jobs.storage.compiled import current_manifest


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

"""Projects of tests; the same files are compiled once in a process."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.storage.compiled import inputs_digest

Files = tuple[tuple[str, bytes], ...]
_KNOWN: dict[tuple[str, Files], Manifest] = {}


def compiled_files(project: Path) -> Manifest:
    """The manifest of a directory that holds a project only; nothing may modify it."""
    paths = sorted(path for path in project.rglob("*") if path.is_file())
    files = tuple((str(path.relative_to(project)), path.read_bytes()) for path in paths)
    key = project.name, files
    if key not in _KNOWN:
        _KNOWN[key] = compile_project(project)
    return _KNOWN[key]


def put_compiled(settings: Settings, manifest: Manifest) -> None:
    """Write a manifest as if the project's files had been compiled to it."""
    digest = inputs_digest(settings, manifest)
    manifest.model_copy(update={"compiled_from": digest}).write(settings.manifest_file)

"""A project that is in force, and the commands over it."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.deploy.kept_settings import kept_settings
from spark_jobs.settings import load_settings
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.compiled import compiled
from tests.deployments import put_in_force


def tidemark(project: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--project", str(project), *words])


def in_force(project: Path) -> None:
    """Put the project in force, as an apply does that computes nothing."""
    settings = load_settings(project)
    manifest = compiled(settings).model_copy(update={"deployment": "d1-tests"})
    with ControlStore.open(settings.control_url) as store:
        text, kept = manifest.model_dump_json(), kept_settings(settings)
        put_in_force(store, text, number=1, name="d1-tests", settings=kept)
    manifest.write(settings.manifest_file)

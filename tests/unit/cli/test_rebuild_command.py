"""``tidemark rebuild`` refuses what it can before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.storage import session
from spark_jobs.storage.errors import TableMissingError
from tests.golden.declaration_cases import write_project


def test_a_table_that_was_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(session, "driver_session", lambda *_, **__: pytest.fail("starts Spark"))
    root = write_project(tmp_path / "project", {})
    with pytest.raises(TableMissingError):
        CliRunner().invoke(
            app, ["--project", str(root), "rebuild", "silver.orders"], catch_exceptions=False
        )

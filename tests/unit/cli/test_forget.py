"""What ``tidemark forget`` refuses before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.settings import REPOSITORY
from spark_jobs.silver.errors import SourceUnknownError
from spark_jobs.storage.errors import TableMissingError
from tests.shipped import put_compiled_views


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_compiled_views(tmp_path)
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path))


def forget(source: str) -> BaseException | None:
    arguments = ["--project", str(REPOSITORY), "forget", source, "user_id=7"]
    return CliRunner().invoke(app, arguments).exception


def test_a_source_without_a_record_so_far() -> None:
    error = forget("users")
    assert isinstance(error, TableMissingError)
    assert error.location_of_table.endswith("/bronze/users")


def test_a_source_that_is_not_declared() -> None:
    error = forget("userz")
    assert isinstance(error, SourceUnknownError)
    assert error.hint == 'Did you mean "users"?'

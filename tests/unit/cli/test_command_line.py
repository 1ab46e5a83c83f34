"""What the command line says about words that it does not know, and where nothing is to show."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.gold.base import publications
from spark_jobs.silver.errors import SourceUnknownError
from tests.golden.declaration_cases import write_project


def tidemark(project: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--project", str(project), *words])


@pytest.mark.parametrize("words", [("schema", "nope"), ("test", "--engine", "nope")])
def test_an_unknown_word_is_refused_with_the_known_ones(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    refused = tidemark(tmp_path, *words)

    assert refused.exit_code == 2
    assert "'nope' is not one of '" in refused.output
    assert "Value error" not in refused.output


@pytest.mark.parametrize("seconds", ["inf", "1e12", "nan", "-1"])
@pytest.mark.parametrize(
    "words",
    [("query", "SELECT 1", "--seconds"), ("load", "--seconds"), ("reconcile", "--wait")],
)
def test_a_time_that_no_clock_can_wait_for_is_refused(
    tmp_path: Path, words: tuple[str, ...], seconds: str
) -> None:
    """The thread that ends a query at its time limit died of it."""
    refused = tidemark(tmp_path, *words, seconds)

    assert refused.exit_code == 2, refused.output
    assert "1000000000" in refused.output or "greater than or equal" in refused.output


def test_nothing_to_clean_is_one_sentence(tmp_path: Path) -> None:
    shown = tidemark(write_project(tmp_path, {}), "maintain", "--dry-run")

    assert shown.exit_code == 0, shown.output
    assert "No table has been written yet" in shown.stdout
    assert "freed" not in shown.stdout


def test_a_source_that_captures_no_table_is_named_so(tmp_path: Path) -> None:
    """It has records, but of a topic that no database is behind."""
    refused = tidemark(write_project(tmp_path, {}), "source", "delete-backfill", "clicks").exception

    assert isinstance(refused, SourceUnknownError)
    assert refused.primary == "there is no source 'clicks' with a captured table"
    assert refused.hint == "No source has a captured table."


def test_no_skipped_change_is_one_sentence(tmp_path: Path) -> None:
    shown = tidemark(write_project(tmp_path, {}), "source", "skipped")

    assert shown.exit_code == 0
    assert shown.stdout == "The connector left out no change.\n"


@pytest.mark.parametrize("words", ["status", "refresh --all", "explain --all", "verify --all"])
def test_a_project_without_a_view_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """It shows no empty table, and starts no Spark."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    project = write_project(tmp_path / "project", {})
    for file in [*project.glob("sql/gold/*"), *project.glob("expectations/gold/*")]:
        file.unlink()
    shown = tidemark(project, *words.split())

    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines()[0] == "The project has no gold view."


def test_the_release_is_printed_in_any_directory(tmp_path: Path) -> None:
    shown = tidemark(tmp_path, "--version")

    assert shown.exit_code == 0, shown.output
    assert shown.stdout == f"tidemark {version('tidemark')}\n"


@pytest.mark.parametrize("verb", ["refresh", "verify", "explain"])
def test_a_selection_of_no_changed_view_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """It said that the project has no gold view."""
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(publications, "changed_views", lambda *_: set())
    shown = tidemark(write_project(tmp_path / "project", {}), verb, "state:changed")

    assert shown.exit_code == 0, shown.output
    assert shown.stdout == ""
    assert shown.stderr.strip() == "No view of this selection has changed."

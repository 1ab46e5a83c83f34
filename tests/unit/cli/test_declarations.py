from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.serving.project import current_manifest
from spark_jobs.settings import load_settings
from tests.golden.declaration_cases import RIGHT, write_project


def tidemark(project: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--project", str(project), *words])


@pytest.mark.parametrize("name", ["pings", "null", "yes", "select", "values"])
def test_new_files_validate_as_they_are(tmp_path: Path, name: str) -> None:
    """With a name that is a word of YAML or a keyword of SQL too."""
    for kind in ("source", "silver", "gold"):
        assert tidemark(tmp_path, "new", kind, name).exit_code == 0

    assert tidemark(tmp_path, "validate").exit_code == 0


def test_new_refuses_what_exists(tmp_path: Path) -> None:
    tidemark(tmp_path, "new", "source", "pings")
    again = tidemark(tmp_path, "new", "source", "pings")

    assert isinstance(again.exception, LakehouseError)
    assert again.exception.condition == "ALREADY_DECLARED"


@pytest.mark.parametrize("name", ["Pings", "../pings", "a-b", "1st"])
def test_new_refuses_what_cannot_be_a_name(tmp_path: Path, name: str) -> None:
    refused = tidemark(tmp_path, "new", "source", name)

    assert isinstance(refused.exception, LakehouseError)
    assert refused.exception.condition == "FILE_NAME"
    assert not list(tmp_path.rglob("*.yml"))


def test_validate_prints_problems_as_json(tmp_path: Path) -> None:
    project = write_project(tmp_path, {"sources/more.yml": "format: jsn\n"})
    result = tidemark(project, "validate", "--json")

    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert not found["valid"]
    assert found["problems"][0]["file"] == "sources/more.yml"


def test_problems_of_the_settings_are_json_too(tmp_path: Path) -> None:
    project = write_project(tmp_path, {"tidemark.yml": "gold: {enjine: auto}\n"})
    result = tidemark(project, "validate", "--json")

    found = json.loads(result.stdout)
    assert (result.exit_code, found["valid"]) == (1, False)
    assert [one["condition"] for one in found["problems"]] == ["SETTING"]


def test_validate_raises_all_problems(tmp_path: Path) -> None:
    assert isinstance(tidemark(tmp_path, "validate").exception, ProblemsError)


def test_the_problems_of_a_case_file_are_in_its_json(tmp_path: Path) -> None:
    project = write_project(tmp_path, {"tests/cases/gold/spend.yml": "name: x\n"})
    done = tidemark(project, "test", "spend", "--json")
    assert done.exit_code == 1
    (case,) = json.loads(done.stdout)
    found = [one["condition"] for one in case["error"]["problems"]]
    assert set(found) == {"MISSING_KEY", "UNKNOWN_KEY"}


def test_graph_shows_edges(tmp_path: Path) -> None:
    project = write_project(tmp_path, {})
    edges = json.loads(tidemark(project, "graph", "--json").stdout)["edges"]

    assert {"from": "silver.orders", "to": "gold.spend"} in edges
    assert "silver_orders --> gold_spend" in tidemark(project, "graph", "--mermaid").stdout
    assert "gold, tier 0" in tidemark(project, "graph").stdout


def test_compile_prints_where_the_manifest_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    printed = tidemark(write_project(tmp_path, {}), "compile").stdout

    assert Path(printed.strip()).name == "manifest.json"


def test_validate_prints_a_one_line_summary(tmp_path: Path) -> None:
    project = write_project(tmp_path, {})
    result = tidemark(project, "validate")
    assert result.exit_code == 0
    (line,) = result.stdout.splitlines()
    assert line.startswith(f"{project.name} is valid: ")
    assert "1 gold view" in line
    assert "gold.spend" in tidemark(project, "validate", "--list").stdout


def test_validate_warns_of_a_missing_comma(tmp_path: Path) -> None:
    sql = (
        "/* gold\ndescription: d\nowner: o\nrefresh: bulk\n*/\n"
        "SELECT\n  o.order_id\n  amount\nFROM silver.orders AS o\n"
    )
    project = write_project(tmp_path, {"sql/gold/doubt.sql": sql})
    result = tidemark(project, "validate")
    assert result.exit_code == 0
    assert "warning: sql/gold/doubt.sql:8:3: " in result.stderr
    assert "1 warning." in result.stdout
    told = json.loads(tidemark(project, "validate", "--json").stdout)["warnings"]
    assert [one["condition"] for one in told] == ["IMPLICIT_ALIAS"]


def test_a_new_view_starts_from_the_table_that_its_name_names(tmp_path: Path) -> None:
    for kind, name in (("source", "a_first"), ("source", "refunds")):
        assert tidemark(tmp_path, "new", kind, name).exit_code == 0
        assert tidemark(tmp_path, "new", "silver", name).exit_code == 0
    result = tidemark(tmp_path, "new", "gold", "refunds_weekly")
    assert "FROM silver.refunds AS t" in (tmp_path / "sql/gold/refunds_weekly.sql").read_text()
    assert "It reads silver.refunds" in result.stdout


def test_new_files_are_formatted_and_say_what_they_are(tmp_path: Path) -> None:
    """A view over a table without a time has no day."""
    rates = (
        "description: Rates.\nowner: o\nformat: csv\npath: seeds/rates.csv\nkeys: country\n"
        "columns: {country: STRING}\n"
    )
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/rates.yml").write_text(rates)
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds/rates.csv").write_text("country\nde\n")
    for words in (("source", "clicks"), ("silver", "clicks"), ("gold", "clicks_daily")):
        assert tidemark(tmp_path, "new", *words).exit_code == 0
    made = tidemark(tmp_path, "new", "gold", "rate_count", "--from", "bronze.rates")
    assert made.exit_code == 0, made.stderr
    assert tidemark(tmp_path, "fmt", "--check").stdout == "Every file is formatted.\n"
    assert tidemark(tmp_path, "validate", "--no-spark").exit_code == 0
    described = "description: Number of rows of silver.clicks per day.\n"
    assert described in (tmp_path / "sql/gold/clicks_daily.sql").read_text()
    assert "per day" not in (tmp_path / "sql/gold/rate_count.sql").read_text()


def test_verbs_take_selections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    project = write_project(tmp_path / "project", {})
    for selection in ("silver.orders+", "state:changed", "path:sql/gold/spend.sql"):
        result = tidemark(project, "explain", selection, "--json")
        assert [one["view"] for one in json.loads(result.stdout)] == ["spend"]
    for selection, condition in (
        ("tag:none", "NOTHING_SELECTED"),
        ("tags:none", "SELECTION_SYNTAX"),
        ("spent", "VIEW_UNKNOWN"),
    ):
        for verb in ("explain", "refresh", "verify", "test", "replay"):
            refused = tidemark(project, verb, selection).exception
            assert isinstance(refused, LakehouseError), (verb, selection)
            assert refused.condition == condition


def least(project: Path) -> str:
    """The SQL of the view ``big`` as the commands about files use it."""
    settings = load_settings(project)
    return current_manifest(settings).gold["big"].query.rpartition(">")[2].strip()


@pytest.fixture
def with_variable(tmp_path: Path) -> Path:
    header = RIGHT["sql/gold/spend.sql"].partition("*/")[0] + "*/\n"
    sql = header + "SELECT o.order_id FROM silver.orders AS o WHERE o.amount > @least\n"
    settings = "variables: {least: 10}\n"
    return write_project(tmp_path, {"sql/gold/big.sql": sql, "tidemark.yml": settings})


def test_a_variable_of_one_command_is_of_this_command(
    with_variable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert least(with_variable) == "10"
    with monkeypatch.context() as changed:
        changed.setenv("TIDEMARK_VARIABLES", '{"least": 100}')
        assert least(with_variable) == "100"
    assert least(with_variable) == "10"


def test_a_manifest_that_is_newer_than_a_changed_file_is_not_its_manifest(
    with_variable: Path,
) -> None:
    """The file was saved while an apply ran, or copied with its old time."""
    assert least(with_variable) == "10"
    file = with_variable / "sql" / "gold" / "big.sql"
    then = file.stat().st_mtime_ns
    file.write_text(file.read_text().replace("@least", "33"))
    os.utime(file, ns=(then - 1, then - 1))

    assert least(with_variable) == "33"


def test_a_changed_file_in_a_linked_folder_is_noticed(with_variable: Path) -> None:
    (with_variable / "sql" / "gold").rename(with_variable / "elsewhere")
    (with_variable / "sql" / "gold").symlink_to(with_variable / "elsewhere")
    assert least(with_variable) == "10"
    file = with_variable / "elsewhere" / "big.sql"
    file.write_text(file.read_text().replace("@least", "33"))

    assert least(with_variable) == "33"

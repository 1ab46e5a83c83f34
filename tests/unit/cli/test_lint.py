"""``tidemark lint`` over a repository of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner, Result

from spark_jobs.cli.main import app
from spark_jobs.errors import LakehouseError
from spark_jobs.serving.report.lint_changes import BecameFullError
from spark_jobs.serving.report.lint_reference import manifest_at
from spark_jobs.settings import load_settings

HEADER = "/* gold\ndescription: A view.\nowner: tests\nrefresh: bulk\n{}*/\n"
SUMS = "SELECT o.user_id, SUM(o.amount) AS spend\nFROM bronze.orders AS o\nGROUP BY o.user_id\n"
MANY = "SELECT\n  STDDEV(o.amount) AS most\nFROM bronze.orders AS o\n"
PLAIN = "SELECT o.user_id FROM bronze.orders AS o\n"


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *identity, *words], check=True, capture_output=True)


def write(project: Path, view: str, sql: str, header: str = "") -> None:
    file = project / "sql" / "gold" / f"{view}.sql"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEADER.format(header) + sql, encoding="utf-8")


def lint(project: Path, *words: str, against: str = "main") -> Result:
    line = ["--project", str(project), "lint", "--against", against, *words]
    return CliRunner().invoke(app, line)


def changes(project: Path) -> list[tuple[str, str]]:
    found = json.loads(lint(project, "--json").stdout)
    return [(one["view"], one["change"]) for one in found["changes"]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in a folder of a repository, with a relative Delta table that nobody commits."""
    folder = tmp_path / "house" / "shop"
    rows = {"user_id": pa.array([1], pa.int64()), "amount": pa.array([1], pa.int64())}
    write_deltalake(folder / "data" / "orders", pa.table(rows))
    source = folder / "sources" / "orders.yml"
    source.parent.mkdir()
    source.write_text("format: delta\nlocation: data/orders\n", encoding="utf-8")
    write(folder, "spend", SUMS)
    write(folder, "most", MANY)
    write(folder, "plain", PLAIN)
    house = folder.parent
    git(house, "init", "--initial-branch", "main")
    git(house, "add", "shop/sources", "shop/sql")
    git(house, "commit", "--message", "first")
    return folder


def test_nothing_changed(project: Path) -> None:
    result = lint(project)

    assert result.exit_code == 0
    assert "as at main" in result.stdout


def test_a_view_that_becomes_full_fails_with_its_place(project: Path) -> None:
    write(project, "spend", MANY)
    write(project, "plain", SUMS)
    result = lint(project, "--json")
    found = json.loads(result.stdout)

    assert result.exit_code == 1
    assert not found["holds"]
    first, second = found["changes"]
    assert first["view"] == "spend"
    assert first["before"] == "aggregate_state"
    assert first["obstacle"] == "DEPENDS_ON_EVERY_ROW"
    place = [first["error"][part] for part in ("file", "line", "column")]
    assert place == ["sql/gold/spend.sql", 7, 3]
    assert second["change"] == "other_rule"
    shown = lint(project)
    assert shown.exit_code == 1
    assert "sql/gold/spend.sql:7:3: gold view 'spend' was" in shown.stdout
    assert "Hint: " in shown.stdout
    assert f"[{BecameFullError.condition}]" in shown.stdout


def test_a_view_that_becomes_incremental_is_reported(project: Path) -> None:
    write(project, "most", SUMS)

    assert changes(project) == [("most", "became_incremental")]
    assert "'most' became incremental: full before, aggregate state now" in lint(project).stdout


def test_a_declared_full_view_is_accepted(project: Path) -> None:
    write(project, "spend", MANY, "strategy: full\n")

    assert lint(project).exit_code == 0
    assert changes(project) == [("spend", "declared_full")]


def test_new_and_removed_views_are_not_compared(project: Path) -> None:
    write(project, "fresh", MANY)
    (project / "sql" / "gold" / "plain.sql").unlink()

    assert changes(project) == []


def test_a_broken_contract_fails(project: Path) -> None:
    write(project, "plain", PLAIN.replace("SELECT", "SELECT o.amount,"), "contract: strict\n")
    git(project, "commit", "--all", "--message", "promised")
    write(project, "plain", PLAIN, "contract: strict\n")
    found = json.loads(lint(project, "--json").stdout)

    assert [one["condition"] for one in found["contracts"]] == ["CONTRACT_BROKEN"]
    assert "amount is removed" in lint(project).stdout
    assert lint(project).exit_code == 1
    assert lint(project, "--break-contract", "plain").exit_code == 0


def test_broken_views_of_the_other_commit_are_not_compared(project: Path) -> None:
    write(project, "plain", "SELECT o.nothing FROM bronze.orders AS o\n")
    git(project, "commit", "--all", "--message", "broken")
    write(project, "plain", PLAIN)
    write(project, "spend", MANY)
    found = json.loads(lint(project, "--json").stdout)

    assert [one["view"] for one in found["changes"]] == ["spend"]
    assert len(found["not_compared"]) == 1


def test_a_source_of_a_file_is_compared(project: Path) -> None:
    seed = "format: csv\npath: seeds/rates.csv\nkeys: k\ncolumns: {k: INT, v: INT}\n"
    (project / "sources" / "rates.yml").write_text(seed, encoding="utf-8")
    (project / "seeds").mkdir()
    (project / "seeds" / "rates.csv").write_text("k,v\n1,2\n", encoding="utf-8")
    git(project, "add", "sources", "seeds")
    git(project, "commit", "--message", "a seed")

    assert json.loads(lint(project, "--json").stdout)["not_compared"] == []


def test_a_source_of_avro_records_is_compared(project: Path) -> None:
    source = (
        "format: avro\ntopic: pings\nevent_id: id\nschemas: schemas/v1/ping.avsc\n"
        "columns: {id: STRING}\n"
    )
    schema = {"type": "record", "name": "Ping", "fields": [{"name": "id", "type": "string"}]}
    (project / "sources" / "pings.yml").write_text(source, encoding="utf-8")
    file = project / "schemas" / "v1" / "ping.avsc"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(schema), encoding="utf-8")
    git(project, "add", "sources", "schemas")
    git(project, "commit", "--message", "records")

    assert json.loads(lint(project, "--json").stdout)["not_compared"] == []


def test_the_other_commit_has_its_own_variables(project: Path) -> None:
    settings = project / "tidemark.yml"
    settings.write_text("variables: {least: 1}\n", encoding="utf-8")
    write(project, "plain", PLAIN.rstrip() + " WHERE o.amount > @least\n")
    git(project, "add", ".")
    git(project, "commit", "--message", "a variable")
    settings.write_text("variables: {most: 5}\n", encoding="utf-8")
    write(project, "plain", PLAIN.rstrip() + " WHERE o.amount < @most\n")
    before, problems = manifest_at(load_settings(project), "main")

    assert problems == []
    assert "> 1" in before.gold["plain"].query


@pytest.mark.parametrize("absolute", [True, False])
def test_a_declaration_may_be_a_link_out_of_the_project(project: Path, absolute: bool) -> None:
    shared = project.parent / "common" / "plain.sql"
    shared.parent.mkdir()
    file = project / "sql" / "gold" / "plain.sql"
    file.rename(shared)
    file.symlink_to(shared if absolute else "../../../common/plain.sql")
    git(project, "add", ".")
    git(project, "commit", "--message", "a link")
    found = lint(project, "--json")

    assert found.exit_code == 0, found.exception
    assert json.loads(found.stdout)["not_compared"] == []


def test_the_tree_of_the_user_stays_as_it_is(project: Path) -> None:
    write(project, "spend", MANY)
    before = sorted(project.rglob("*"))
    lint(project)

    assert sorted(project.rglob("*")) == before
    assert (project / "sql" / "gold" / "spend.sql").read_text(encoding="utf-8").endswith(MANY)


@pytest.mark.parametrize("ref", ["nowhere", "--help", "main:shop"])
def test_a_commit_that_is_not_there(project: Path, ref: str) -> None:
    refused = lint(project, against=ref).exception

    assert isinstance(refused, LakehouseError)
    assert refused.condition == "GIT_REF"


def test_a_project_outside_of_any_repository(project: Path) -> None:
    (project.parent / ".git").rename(project.parent / "elsewhere")
    refused = lint(project).exception

    assert isinstance(refused, LakehouseError)
    assert refused.condition == "GIT_REF"

"""``tidemark validate --connect``: what is declared against a real database."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import psycopg
import pytest
from click.testing import Result
from typer.testing import CliRunner

from spark_jobs.access.errors import CertificateRefusedError
from spark_jobs.access.source_tables import SourceTable
from spark_jobs.cli.main import app
from spark_jobs.errors import ProblemsError
from spark_jobs.silver.errors import DatabaseUnreachableError
from spark_jobs.stack import source_check

SOURCE = """description: What is ordered.
owner: shop
format: debezium
topic: shop.{schema}.{table}
table: {schema}.{table}
keys: [{keys}]
columns:
  a: {{type: BIGINT, required: true}}
  b: {{type: STRING, required: true}}
"""
SCHEMA = "declared"


@pytest.fixture
def dsn(postgres_socket: Path) -> str:
    address = f"host={postgres_socket} user=tidemark dbname=postgres"
    with psycopg.connect(address) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE".encode())
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        connection.execute(f"CREATE TABLE {SCHEMA}.keyed (a INT, b TEXT, PRIMARY KEY (a))".encode())
        connection.execute(f"CREATE TABLE {SCHEMA}.keyless (a INT, b TEXT)".encode())
    return address


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "sources").mkdir()
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


def declare(project: Path, table: str, keys: str) -> None:
    text = SOURCE.format(schema=SCHEMA, table=table, keys=keys)
    (project / f"sources/{table}.yml").write_text(text)


def validate(project: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["--project", str(project), "validate", *words])


def conditions(result: Result) -> dict[str, str]:
    """What is wrong, by file."""
    assert isinstance(result.exception, ProblemsError), result.exception
    return {
        one.location.file if one.location else "": one.condition
        for one in result.exception.problems
    }


def test_keys_that_the_database_has_are_right(
    project: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", dsn)
    declare(project, "keyed", "a")
    assert validate(project, "--connect").exit_code == 0


def test_each_wrong_key_is_named_with_its_file(
    project: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", dsn)
    declare(project, "keyed", "a, b")
    declare(project, "keyless", "a")
    declare(project, "absent", "a")
    assert conditions(validate(project, "--connect")) == {
        "sources/keyed.yml": "SOURCE_KEY_DIFFERS",
        "sources/keyless.yml": "SOURCE_KEY_DIFFERS",
        "sources/absent.yml": "SOURCE_TABLE_MISSING",
    }
    told = validate(project, "--connect", "--json")
    assert told.exit_code == 1
    found = json.loads(told.stdout)
    assert not found["valid"]
    assert len(found["problems"]) == 3
    # Nobody asks the database who is not told to.
    assert validate(project).exit_code == 0


def test_arrays_whose_updates_are_skipped_are_a_warning(
    project: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", dsn)
    declare(project, "keyed", "a")
    with psycopg.connect(dsn) as connection:
        columns = "ADD held TEXT[], ADD never INTERVAL[], ADD left_out DOUBLE PRECISION[]"
        connection.execute(f"ALTER TABLE {SCHEMA}.keyed {columns}".encode())
    told = validate(project, "--connect")
    assert told.exit_code == 0
    assert "2 kB in left_out" in told.stderr
    found = json.loads(validate(project, "--connect", "--json").stdout)
    assert [one["condition"] for one in found["warnings"]] == ["ARRAYS_LEFT_OUT"]
    with psycopg.connect(dsn) as connection:
        connection.execute(f"ALTER TABLE {SCHEMA}.keyed REPLICA IDENTITY FULL".encode())
    assert validate(project, "--connect").stderr == ""


def test_problems_of_the_files_are_reported_with_it(
    project: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", dsn)
    declare(project, "keyless", "a")
    (project / "sources/broken.yml").write_text("description: x\nfromat: json\n")
    found = conditions(validate(project, "--connect"))
    assert found.pop("sources/keyless.yml") == "SOURCE_KEY_DIFFERS"
    assert set(found) == {"sources/broken.yml"}


def test_a_missing_dsn_and_an_unreachable_database_are_errors(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(project, "keyed", "a")
    monkeypatch.delenv("TIDEMARK_SOURCE_DATABASE", raising=False)
    unset = validate(project, "--connect").exception
    assert getattr(unset, "condition", None) == "SOURCE_DATABASE_UNSET"
    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", "postgresql://x@127.0.0.1:1/shop")
    down = validate(project, "--connect").exception
    assert getattr(down, "condition", None) == "DATABASE_UNREACHABLE"
    # No table was asked for.
    assert str(down).startswith("the source database cannot be read")


@pytest.mark.parametrize("closed", ["first", "second"])
def test_the_table_that_cannot_be_read_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, closed: str
) -> None:
    def describe(_: object, table: str) -> SourceTable:
        if table == f"{SCHEMA}.{closed}":
            raise psycopg.errors.InsufficientPrivilege("permission denied for schema declared")
        return SourceTable({}, ("a",))

    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", "postgresql://x@127.0.0.1:1/shop")
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: nullcontext())
    monkeypatch.setattr(source_check, "describe_table", describe)
    declare(project, "first", "a")
    declare(project, "second", "a")
    found = validate(project, "--connect").exception
    assert isinstance(found, DatabaseUnreachableError)
    assert found.table == f"{SCHEMA}.{closed}"
    assert found.detail == "permission denied for schema declared."


def test_a_certificate_that_is_not_trusted_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("connection failed: SSL error: certificate verify failed")

    monkeypatch.setenv("TIDEMARK_SOURCE_DATABASE", "postgresql://x@127.0.0.1:1/shop")
    monkeypatch.setattr(psycopg, "connect", connect)
    declare(project, "keyed", "a")
    assert isinstance(validate(project, "--connect").exception, CertificateRefusedError)

"""Airflow's metadata database is prepared once, and again when it is another one."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from spark_jobs.access.secrets import AIRFLOW_ANNOUNCER, read_secret, secret_path
from spark_jobs.settings import load_settings
from spark_jobs.stack import airflow
from spark_jobs.stack.airflow import prepare_database
from spark_jobs.stack.errors import PartFailedError


@dataclass
class Database:
    """Answers as the metadata database does: a note exists only beside a schema.

    Attributes:
        preparations: the number of preparations of any database at this address.
    """

    schema: bool = False
    comment: str | None = None
    code: int = 0
    preparations: int = 0
    statements: list[str] = field(default_factory=list)

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def execute(self, statement: object) -> Database:
        if isinstance(statement, str):
            assert "obj_description(to_regclass('alembic_version')" in statement
            return self
        assert self.schema, "a comment on a table that does not exist"
        words, literal = statement.as_string().split(" IS ", 1)
        assert words == "COMMENT ON TABLE alembic_version"
        self.comment = literal.strip("'")
        return self

    def fetchone(self) -> tuple[str | None]:
        return (self.comment,)

    def prepare(self, command: list[str], **options: object) -> SimpleNamespace:
        self.preparations += 1
        self.schema = self.code == 0
        return SimpleNamespace(returncode=self.code)


@pytest.fixture
def database(monkeypatch) -> Database:
    made = Database()
    monkeypatch.setattr(subprocess, "run", made.prepare)
    monkeypatch.setattr(airflow.psycopg, "connect", lambda *_, **__: made)
    monkeypatch.setattr(airflow, "write_airflow_config", lambda _: None)
    monkeypatch.setattr(airflow, "dsn", lambda *_, **__: "postgresql://")
    return made


def settings_of(tmp_path, **sections):
    return load_settings(tmp_path, state_dir=tmp_path / "state", **sections)


def test_a_database_that_is_prepared_is_not_prepared_again(database, tmp_path) -> None:
    for _ in range(3):
        prepare_database(settings_of(tmp_path))
    assert database.preparations == 1


def test_a_database_that_was_deleted_or_restored_is_prepared_again(database, tmp_path) -> None:
    """Nothing beside the database may say that it is prepared."""
    prepare_database(settings_of(tmp_path))
    database.schema, database.comment = False, None
    prepare_database(settings_of(tmp_path))
    assert database.preparations == 2
    # A backup of another release has that release's note, or none.
    database.comment = database.comment.replace('"apache-airflow": "', '"apache-airflow": "0')
    prepare_database(settings_of(tmp_path))
    assert database.preparations == 3


def test_other_pools_are_made_in_a_prepared_database(database, tmp_path) -> None:
    prepare_database(settings_of(tmp_path))
    prepare_database(settings_of(tmp_path, airflow={"pools": {"maintenance": 5}}))
    assert database.preparations == 2


def test_a_new_password_of_the_announcer_reaches_a_prepared_database(database, tmp_path) -> None:
    settings = settings_of(tmp_path)
    prepare_database(settings)
    word = read_secret(settings, AIRFLOW_ANNOUNCER)
    assert word not in str(database.comment)
    secret_path(settings, AIRFLOW_ANNOUNCER).unlink()
    prepare_database(settings)
    assert database.preparations == 2


def test_a_preparation_that_failed_is_repeated(database, tmp_path) -> None:
    database.code = 1
    with pytest.raises(PartFailedError):
        prepare_database(settings_of(tmp_path))
    assert database.comment is None
    database.code = 0
    prepare_database(settings_of(tmp_path))
    assert database.preparations == 2

"""Airflow's metadata database is prepared once, and again when it is another one."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from spark_jobs.access.secrets import AIRFLOW_ANNOUNCER, read_secret, secret_path
from spark_jobs.settings import load_settings
from spark_jobs.stack import airflow
from spark_jobs.stack.airflow import prepare_database
from spark_jobs.stack.airflow_database import RESET, make_users
from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.secrets import AIRFLOW_USERS


@dataclass
class Database:
    """Answers as the metadata database does: a note exists only beside a schema.

    Attributes:
        preparations: the number of preparations of any database at this address.
        command: of the last one.
    """

    schema: bool = False
    comment: str | None = None
    code: int = 0
    preparations: int = 0
    command: list[str] = field(default_factory=list)

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
        self.command = command
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


def test_logins_that_were_made_again_reach_a_prepared_database(database, tmp_path) -> None:
    """The start shows them; the users would keep passwords that nobody knows any more."""
    settings = settings_of(tmp_path)
    prepare_database(settings)
    first = read_secret(settings, AIRFLOW_USERS)
    # People may have changed their passwords, which other reasons must not take back.
    prepare_database(settings_of(tmp_path, airflow={"pools": {"maintenance": 5}}))
    assert RESET not in database.command
    secret_path(settings, AIRFLOW_USERS).unlink()
    database.code = 1
    for code in (1, 0):
        database.code = code
        with suppress(PartFailedError):
            prepare_database(settings)
        assert RESET in database.command
    again = read_secret(settings, AIRFLOW_USERS)
    assert again != first
    prepare_database(settings)
    assert database.preparations == 4
    # The database of an earlier release has no note of its users.
    noted = json.loads(database.comment)
    del noted["users"]
    database.comment = json.dumps(noted)
    prepare_database(settings)
    assert RESET not in database.command


@pytest.mark.parametrize("reset", [True, False])
def test_passwords_of_users_are_replaced_only_if_the_file_is_new(monkeypatch, reset) -> None:
    passwords = {"admin": "chosen by the administrator"}
    security = SimpleNamespace(
        sync_roles=lambda: None,
        create_permission=lambda *_: None,
        find_role=lambda name: name,
        add_permission_to_role=lambda *_: None,
        find_user=lambda name: SimpleNamespace(id=name) if name in passwords else None,
        check_password=lambda name, password: passwords[name] == password,
        reset_password=lambda name, password: passwords.update({name: password}) or True,
        add_user=lambda name, *facts: passwords.update({name: facts[-1]}) or True,
    )
    utilities = SimpleNamespace(
        get_application_builder=lambda: nullcontext(SimpleNamespace(sm=security))
    )
    permissions = SimpleNamespace(ACTION_CAN_READ="", RESOURCE_PLUGIN="")
    fab = "airflow.providers.fab"
    monkeypatch.setitem(sys.modules, f"{fab}.auth_manager.cli_commands.utils", utilities)
    security_module = SimpleNamespace(permissions=permissions)
    monkeypatch.setitem(sys.modules, f"{fab}.www.security", security_module)
    users = {name: {"role": "Admin", "password": f"of {name}"} for name in ("admin", "analyst")}
    make_users(users, reset=reset)
    kept = "of admin" if reset else "chosen by the administrator"
    assert passwords == {"admin": kept, "analyst": "of analyst"}


def test_a_preparation_that_failed_is_repeated(database, tmp_path) -> None:
    database.code = 1
    with pytest.raises(PartFailedError):
        prepare_database(settings_of(tmp_path))
    assert database.comment is None
    database.code = 0
    prepare_database(settings_of(tmp_path))
    assert database.preparations == 2

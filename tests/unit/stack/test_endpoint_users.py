"""Users of the SQL endpoint, by the command line and in their file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.endpoint import may_enter
from spark_jobs.stack.endpoint_users import (
    USERS,
    RoleUnknownError,
    UserNameError,
    UserUnknownError,
    add_user,
    read_users,
    remove_user,
)

SETTINGS = """\
endpoint:
  roles:
    finance: {schemas: [gold]}
    support: {tables: [silver.orders]}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "tidemark.yml").write_text(SETTINGS)
    return load_settings(tmp_path)


def test_a_user_enters_with_the_own_password_only(settings: Settings) -> None:
    first, second = add_user(settings, "ada", "finance"), add_user(settings, "bob", "support")
    assert may_enter(settings, "ada", first)
    assert may_enter(settings, "bob", second)
    assert not may_enter(settings, "ada", second)
    assert not may_enter(settings, "ada", "")
    assert not may_enter(settings, "eve", first)
    assert {name: one.role for name, one in read_users(settings).items()} == {
        "ada": "finance",
        "bob": "support",
    }


def test_no_password_is_stored(settings: Settings) -> None:
    password = add_user(settings, "ada", "finance")
    file = settings.secrets_dir / USERS
    assert password not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_adding_a_user_again_changes_role_and_password(settings: Settings) -> None:
    before = add_user(settings, "ada", "finance")
    after = add_user(settings, "ada", "support")
    assert not may_enter(settings, "ada", before)
    assert may_enter(settings, "ada", after)
    assert read_users(settings)["ada"].role == "support"


def test_a_removed_user_does_not_enter(settings: Settings) -> None:
    password = add_user(settings, "ada", "finance")
    remove_user(settings, "ada")
    assert not may_enter(settings, "ada", password)
    with pytest.raises(UserUnknownError):
        remove_user(settings, "ada")


@pytest.mark.parametrize("name", ["", "analyst", "Ada", "1st", "a b", "a" * 64, "a\n"])
def test_names_that_no_user_may_have(settings: Settings, name: str) -> None:
    with pytest.raises(UserNameError):
        add_user(settings, name, "finance")
    assert read_users(settings) == {}


def test_a_role_must_be_declared(settings: Settings) -> None:
    with pytest.raises(RoleUnknownError, match="financ"):
        add_user(settings, "ada", "financ")


def test_the_commands(settings: Settings) -> None:
    def run(*arguments: str) -> str:
        place = ["--project", str(settings.project_dir), "endpoint", "user"]
        done = CliRunner().invoke(app, [*place, *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    password = run("add", "ada", "--role", "finance").strip().splitlines()[-1]
    assert may_enter(settings, "ada", password)
    listed = run("list")
    assert "ada" in listed
    assert "finance" in listed
    assert password not in listed
    run("remove", "ada")
    assert "ada" not in run("list")

"""The user as whom the streams emit asset events has the password of the secret."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from spark_jobs.stack.airflow_database import make_announcer

BUILDER = "airflow.providers.fab.auth_manager.cli_commands.utils.get_application_builder"


@dataclass
class Security:
    """The users of Airflow, as far as this needs them: their passwords."""

    users: dict[str, str] = field(default_factory=dict)
    resets: int = 0

    def add_role(self, name: str) -> str:
        return name

    def create_permission(self, action: str, resource: str) -> str:
        return f"{action} {resource}"

    def add_permission_to_role(self, role: str, permission: str) -> None:
        pass

    def find_user(self, name: str) -> SimpleNamespace | None:
        return SimpleNamespace(id=name) if name in self.users else None

    def check_password(self, name: str, password: str) -> bool:
        return self.users[name] == password

    def add_user(self, name: str, *facts: Any) -> bool:
        self.users[name] = facts[-1]
        return True

    def reset_password(self, user: str, password: str) -> bool:
        self.users[user] = password
        self.resets += 1
        return True


def test_a_secret_that_was_made_again_is_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise Airflow answers 401 to every event until a person changes one of them."""
    security = Security()

    @contextmanager
    def builder() -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(sm=security)

    monkeypatch.setattr(BUILDER, builder)
    make_announcer("announcer", "first")
    make_announcer("announcer", "first")
    assert (security.users, security.resets) == ({"announcer": "first"}, 0)
    make_announcer("announcer", "second")
    assert (security.users, security.resets) == ({"announcer": "second"}, 1)

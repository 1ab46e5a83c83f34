"""Users of the SQL endpoint: each has a role and a generated password, kept as a hash.

The file is read at each login and for each statement, so a change takes effect at once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.secrets import read_secret
from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings
from spark_jobs.stack.secrets import random_password, write_secret
from spark_jobs.state.locks import table_lock
from spark_jobs.storage.lake import lock_directory

USERS = "endpoint-users.json"
# The user of ``stack.endpoint``, whose password is a secret of its own.
ANALYST = "analyst"
_NAME = re.compile(r"[a-z][a-z0-9_.@-]{0,62}")
# Work factors of scrypt (RFC 7914): 16 MiB and some 50 ms for each login.
_WORK, _BLOCK, _LANES = 2**14, 8, 1


class User(BaseModel):
    """A user as stored: hash and salt in hexadecimal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    role: str
    salt: str
    hash: str


class UserNameError(LakehouseError):
    """A name that no user may have."""

    condition = "USER_NAME"
    name: str
    problem: str
    primary = "{name!r} cannot be the name of a user of the endpoint: {problem}"
    hint = "Start with a letter; then lower-case letters, digits and _ . @ - may follow."


class UserUnknownError(LakehouseError):
    """There is no such user."""

    condition = "USER_UNKNOWN"
    name: str
    known: tuple[str, ...]
    misspelt = "name"
    primary = "the endpoint has no user {name!r}"
    hint = "`tidemark endpoint user list` shows all users."


class RoleUnknownError(LakehouseError):
    """The settings declare no such role."""

    condition = "ROLE_UNKNOWN"
    name: str
    known: tuple[str, ...]
    misspelt = "name"
    primary = "there is no role {name!r}"
    hint = "Declare it in tidemark.yml under endpoint.roles, with schemas, tags or tables."


def read_users(settings: Settings) -> dict[str, User]:
    """All users by name, without the user ``analyst``."""
    try:
        stored = json.loads(read_secret(settings, USERS))
    except SecretMissingError:
        return {}
    return {name: User.model_validate(one) for name, one in stored.items()}


def add_user(settings: Settings, name: str, role: str) -> str:
    """Create a user, or give an existing one another role and a new password.

    Returns:
        the password; only its hash is stored.

    Raises:
        UserNameError: the name is taken, or not one that a user may have.
        RoleUnknownError: the settings declare no such role.
    """
    if name == ANALYST:
        raise UserNameError(name, "it is the user that may query all that is served")
    if not _NAME.fullmatch(name):
        raise UserNameError(name, "it has other characters, or more than 63")
    if role not in settings.endpoint.roles:
        raise RoleUnknownError(role, tuple(sorted(settings.endpoint.roles)))
    password, salt = random_password(), secrets.token_hex(16)
    user = User(role=role, salt=salt, hash=_hash(password, salt))
    with table_lock(lock_directory(settings.lake, settings.state), "endpoint-users"):
        _write(settings, {**read_users(settings), name: user})
    return password


def remove_user(settings: Settings, name: str) -> None:
    """Remove a user; statements of open connections are refused from now on.

    Raises:
        UserUnknownError: there is no such user.
    """
    with table_lock(lock_directory(settings.lake, settings.state), "endpoint-users"):
        users = read_users(settings)
        if name not in users:
            raise UserUnknownError(name, tuple(sorted(users)))
        _write(settings, {other: one for other, one in users.items() if other != name})


def is_user(settings: Settings, name: str, password: str) -> bool:
    """Whether a user has this password."""
    user = read_users(settings).get(name)
    return user is not None and hmac.compare_digest(_hash(password, user.salt), user.hash)


def _hash(password: str, salt: str) -> str:
    salted = bytes.fromhex(salt)
    return hashlib.scrypt(password.encode(), salt=salted, n=_WORK, r=_BLOCK, p=_LANES).hex()


def _write(settings: Settings, users: Mapping[str, User]) -> None:
    stored = {name: users[name].model_dump() for name in sorted(users)}
    write_secret(settings, USERS, json.dumps(stored, indent=2) + "\n")

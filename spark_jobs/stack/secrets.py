"""Generated secrets: one file each below the state directory, readable by the owner only.

A secret is generated once and then kept. It reaches a program as a file, never on a command line.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from pathlib import Path

from spark_jobs.access.secrets import read_secret, secret_path
from spark_jobs.graph.atomic import replace_file
from spark_jobs.settings import Settings

AIRFLOW_USERS = "airflow-users.json"


def random_password() -> str:
    """A password that needs no quoting anywhere."""
    return secrets.token_urlsafe(24)


def random_signing_key() -> str:
    """A key for HMAC-SHA512, which needs at least 64 bytes (RFC 7518, section 3.2)."""
    return secrets.token_urlsafe(64)


def random_fernet_key() -> str:
    """A key for Airflow's Fernet encryption."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def ensure_secret(
    settings: Settings, name: str, generate: Callable[[], str] = random_password
) -> str:
    """The secret's text; generated if it does not exist yet."""
    path = secret_path(settings, name)
    if not path.exists():
        write_secret(settings, name, generate())
    return read_secret(settings, name)


def write_secret(settings: Settings, name: str, text: str) -> Path:
    """Replace a secret atomically; its permissions are set before the content is written."""
    path = secret_path(settings, name)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for directory in (settings.secrets_dir, path.parent):
        directory.chmod(0o700)
    replace_file(path, text)
    return path


def airflow_users(settings: Settings) -> dict[str, dict[str, str]]:
    """Airflow's users by name, each with ``role`` and ``password``.

    Raises:
        SecretMissingError: they were not generated yet.
    """
    users: dict[str, dict[str, str]] = json.loads(read_secret(settings, AIRFLOW_USERS))
    return users

"""Where secrets lie, and reading one; ``local.secrets`` generates those of the local stack.

A secret is a file of its own, so a secrets backend that writes files can stand in for the stack.
"""

from __future__ import annotations

from pathlib import Path

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.settings import Settings

# What Spark Connect's server asks of whoever calls it.
CONNECT_TOKEN = "spark-connect-token"  # noqa: S105 - the name of the secret
# The certificate of the authority that signs the servers'.
AUTHORITY = "tls/ca.pem"


def secret_path(settings: Settings, name: str) -> Path:
    """Where the secret lies, whether or not it exists."""
    return settings.secrets_dir / name


def read_secret(settings: Settings, name: str) -> str:
    """The secret's text.

    Raises:
        SecretMissingError: nothing generated it yet.
    """
    path = secret_path(settings, name)
    try:
        return path.read_text().strip()
    except FileNotFoundError as error:
        raise SecretMissingError(name, path) from error


def connect_token(settings: Settings) -> str | None:
    """What to tell Spark Connect's server; None where it asks nobody.

    Raises:
        SecretMissingError: nothing generated it yet.
    """
    return read_secret(settings, CONNECT_TOKEN) if settings.security.enabled else None

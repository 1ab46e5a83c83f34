"""Paths of secrets, and reading them; ``stack.secrets`` generates those of the local stack.

Each secret is a file, so a secrets backend that writes files can replace the stack.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.settings import Settings

# The token that Spark Connect's server requires.
CONNECT_TOKEN = "spark-connect-token"  # noqa: S105 - the name of the secret
# Debezium's placeholder for a value that the database did not send. Without this secret it is
# Debezium's default.
UNAVAILABLE_VALUE = "connect/unavailable-value"
DEBEZIUM_PLACEHOLDER = "__debezium_unavailable_value"
# The password of Airflow's user as whom the streams emit events.
AIRFLOW_ANNOUNCER = "airflow-announcer"
# The certificate of the authority that signs the servers' certificates.
AUTHORITY = "tls/ca.pem"


def secret_path(settings: Settings, name: str) -> Path:
    """The path of a secret; it may not exist."""
    return settings.secrets_dir / name


def read_secret(settings: Settings, name: str) -> str:
    """The secret's text.

    Raises:
        SecretMissingError: it does not exist yet.
    """
    path = secret_path(settings, name)
    try:
        return path.read_text().strip()
    except FileNotFoundError as error:
        raise SecretMissingError(name, path) from error


def unavailable_placeholder(settings: Settings) -> str:
    """The placeholder in a change for a value that the database did not send."""
    known = secret_path(settings, UNAVAILABLE_VALUE).exists()
    return read_secret(settings, UNAVAILABLE_VALUE) if known else DEBEZIUM_PLACEHOLDER


def connect_token(settings: Settings, remote: str) -> str | None:
    """The token for a Spark Connect server; None if there is none or it must not be sent.

    It is sent to a server on this machine, and to one whose URL says whether to use TLS. Any other
    URL may name a server without TLS and without authentication, which gets the token only if
    ``security.enabled`` requires one.

    Args:
        settings: whose secret it is.
        remote: the server's URL.

    Raises:
        SecretMissingError: ``security.enabled`` requires a token, and there is none.
    """
    if settings.security.enabled:
        return read_secret(settings, CONNECT_TOKEN)
    if not on_loopback(remote) and "use_ssl=" not in remote:
        return None
    return read_secret(settings, CONNECT_TOKEN) if token_file(settings).exists() else None


def token_file(settings: Settings) -> Path:
    """The path of Spark Connect's token; it may not exist."""
    return secret_path(settings, CONNECT_TOKEN)


def on_loopback(remote: str) -> bool:
    """Whether a URL names this machine.

    >>> [on_loopback(one) for one in ("sc://localhost:1", "sc://127.0.0.1:1/;a=b", "sc://h:1")]
    [True, True, False]
    """
    try:
        host = urlsplit(remote).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Where secrets lie, and reading one; ``local.secrets`` generates those of the local stack.

A secret is a file of its own, so a secrets backend that writes files can stand in for the stack.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.settings import Settings

# What Spark Connect's server asks of whoever calls it.
CONNECT_TOKEN = "spark-connect-token"  # noqa: S105 - the name of the secret
# What Debezium writes in place of a value that the database did not send. Where there is no such
# secret it is Debezium's own text.
UNAVAILABLE_VALUE = "connect/unavailable-value"
DEBEZIUM_PLACEHOLDER = "__debezium_unavailable_value"
# The password of the user of Airflow's as whom the streams emit events.
AIRFLOW_ANNOUNCER = "airflow-announcer"
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


def unavailable_placeholder(settings: Settings) -> str:
    """What stands in a change for a value that the database did not send."""
    known = secret_path(settings, UNAVAILABLE_VALUE).exists()
    return read_secret(settings, UNAVAILABLE_VALUE) if known else DEBEZIUM_PLACEHOLDER


def connect_token(settings: Settings, remote: str) -> str | None:
    """The token for a Spark Connect server; None where none is known or none may be sent.

    A server on this machine gets it, and so does one whose URL says whether to use TLS. Any other
    URL may name a server without TLS that asks nobody, so it gets the token only where
    ``security.enabled`` demands one.

    Args:
        settings: whose secret it is.
        remote: the server's URL.

    Raises:
        SecretMissingError: ``security.enabled`` demands a token, and there is none.
    """
    if settings.security.enabled:
        return read_secret(settings, CONNECT_TOKEN)
    if not on_loopback(remote) and "use_ssl=" not in remote:
        return None
    return read_secret(settings, CONNECT_TOKEN) if token_file(settings).exists() else None


def token_file(settings: Settings) -> Path:
    """Where the token of Spark Connect lies, whether or not it exists."""
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

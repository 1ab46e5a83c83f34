"""The SQL endpoint as a part of the stack that is started when somebody asks for it."""

from __future__ import annotations

import hmac
import socket
import sys
from functools import partial
from pathlib import Path

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.secrets import read_secret
from spark_jobs.local.parts import Part
from spark_jobs.local.ports import LOOPBACK
from spark_jobs.local.secrets import ensure_secret
from spark_jobs.settings import Settings
from spark_jobs.storage.conf import session_environment

NAME = "endpoint"
USER = "analyst"
SECRET = "endpoint"  # noqa: S105 - the name of the secret
PROBE_SECONDS = 5
# SASL in Hive's protocol: a word of status, four bytes of length, what is said.
_START, _OK, _COMPLETE = 1, 2, 5


def endpoint_part(settings: Settings) -> Part:
    """The server as a part of the stack."""
    return Part(
        name=NAME,
        command=(str(Path(sys.executable).parent / "tidemark"), "endpoint", "--foreground"),
        environment=session_environment(settings),
        ports={"ports.endpoint": settings.ports.endpoint},
        prepare=lambda: prepare_endpoint(settings),
        probe=partial(probe_endpoint, settings),
    )


def prepare_endpoint(settings: Settings) -> None:
    """Make the password, once."""
    ensure_secret(settings, SECRET)


def jdbc_url(settings: Settings) -> str:
    """Where clients of JDBC connect to."""
    return f"jdbc:hive2://{LOOPBACK}:{settings.ports.endpoint}"


def may_enter(settings: Settings, user: str, password: str) -> bool:
    """Whether a user and a password are the endpoint's; a new password counts at once."""
    try:
        wanted = read_secret(settings, SECRET)
    except SecretMissingError:
        return False
    return user == USER and hmac.compare_digest(password.encode(), wanted.encode())


def probe_endpoint(settings: Settings) -> str | None:
    """What the server still lacks: it serves once it lets its user in."""
    try:
        password = read_secret(settings, SECRET)
        address = (LOOPBACK, settings.ports.endpoint)
        with socket.create_connection(address, timeout=PROBE_SECONDS) as client:
            client.sendall(_said(_START, b"PLAIN") + _said(_OK, f"\0{USER}\0{password}".encode()))
            answer = client.recv(1)
            # What is left unread would end the connection with an error in the server's log.
            client.recv(1024)
    except SecretMissingError as error:
        return error.primary
    except OSError:
        return "does not listen yet"
    return None if answer == bytes([_COMPLETE]) else "does not let its user in"


def _said(status: int, text: bytes) -> bytes:
    return bytes([status]) + len(text).to_bytes(4, "big") + text

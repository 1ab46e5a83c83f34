"""The SQL endpoint as a part of the stack that is started when somebody asks for it."""

from __future__ import annotations

import hmac
import os
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from spark_jobs.access.errors import SecretMissingError
from spark_jobs.access.secrets import AUTHORITY, read_secret
from spark_jobs.errors import SettingError
from spark_jobs.settings import Settings
from spark_jobs.stack.certificates import (
    ENDPOINT,
    certificate_name,
    ensure_certificate,
    key_store,
    trust_store,
)
from spark_jobs.stack.endpoint_account import check_endpoint_account, endpoint_account
from spark_jobs.stack.endpoint_files import KeyStore, endpoint_files
from spark_jobs.stack.errors import EndpointSilentError
from spark_jobs.stack.object_store import store_names
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret, random_password
from spark_jobs.storage.conf import session_environment

NAME = ENDPOINT
USER = "analyst"
SECRET = "endpoint"  # noqa: S105 - the name of the secret
PROBE_SECONDS = 5
PULSE_SECONDS = 20
PULSE_FAILURES = 3
# SASL in Hive's protocol: a word of status, four bytes of length, what is said.
_START, _OK, _COMPLETE = 1, 2, 5


def endpoint_part(settings: Settings) -> Part:
    """The server as a part of the stack."""
    return Part(
        name=NAME,
        command=(str(Path(sys.executable).parent / "tidemark"), "endpoint", "--foreground"),
        needs=store_names(settings),
        environment=session_environment(settings),
        ports={"ports.endpoint": settings.ports.endpoint},
        prepare=lambda: prepare_endpoint(settings),
        probe=partial(probe_endpoint, settings),
    )


def prepare_endpoint(settings: Settings) -> None:
    """Make the password, once, and where security is on what TLS needs at both ends.

    Raises:
        SettingError: it would be reached from elsewhere without TLS, or its account cannot be
            the server's.
    """
    if settings.endpoint.host != LOOPBACK and not settings.security.enabled:
        problem = "passwords would be sent without TLS; set security.enabled too"
        raise SettingError("endpoint.host", problem)
    check_endpoint_account(settings)
    ensure_secret(settings, SECRET)
    if settings.security.enabled:
        ensure_certificate(settings, ENDPOINT)
        store = trust_store_file(settings)
        store.parent.mkdir(parents=True, exist_ok=True)
        store.write_bytes(trust_store(read_secret(settings, AUTHORITY)))


def trust_store_file(settings: Settings) -> Path:
    """The authority for clients in Java, which read no PEM; it is no secret."""
    return endpoint_files(settings) / "ca.p12"


@contextmanager
def served_key_store(settings: Settings) -> Iterator[KeyStore | None]:
    """What the server reads when it starts; nobody keeps the password. None without security.

    Raises:
        SecretMissingError: nobody has prepared the server.
    """
    if not settings.security.enabled:
        yield None
        return
    pem, password = read_secret(settings, certificate_name(ENDPOINT)), random_password()
    with tempfile.NamedTemporaryFile(dir=endpoint_files(settings), suffix=".p12") as file:
        file.write(key_store(pem, password))
        file.flush()
        if settings.endpoint.account:
            account = endpoint_account(settings)
            os.chown(file.fileno(), account.uid, account.gid)
        yield KeyStore(Path(file.name), password)


def jdbc_url(settings: Settings) -> str:
    """Where clients of JDBC connect to."""
    address = f"jdbc:hive2://{LOOPBACK}:{settings.ports.endpoint}"
    if not settings.security.enabled:
        return address
    return f"{address}/;ssl=true;sslTrustStore={quote(str(trust_store_file(settings)))}"


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
        with _connected(settings) as client:
            client.sendall(_said(_START, b"PLAIN") + _said(_OK, f"\0{USER}\0{password}".encode()))
            answer = client.recv(1)
            # What is left unread would end the connection with an error in the server's log.
            client.recv(1024)
    except SecretMissingError as error:
        return error.primary
    except ssl.SSLCertVerificationError as error:
        return f"shows a certificate that is refused: {error.verify_message}"
    except OSError:
        return "does not listen yet"
    return None if answer == bytes([_COMPLETE]) else "does not let its user in"


@dataclass
class Pulse:
    """Whether the server of this process still lets its user in.

    Attributes:
        asked_at: on the clock of ``time.monotonic``.
        failed: how many times in a row it did not.
    """

    settings: Settings
    asked_at: float = field(default_factory=time.monotonic)
    failed: int = 0

    def check(self) -> None:
        """Ask, if it is time again; to be called about once a second.

        Raises:
            EndpointSilentError: it did not, ``PULSE_FAILURES`` times in a row.
        """
        if time.monotonic() - self.asked_at < PULSE_SECONDS:
            return
        problem = probe_endpoint(self.settings)
        self.asked_at = time.monotonic()
        self.failed = self.failed + 1 if problem else 0
        if problem and self.failed >= PULSE_FAILURES:
            raise EndpointSilentError(problem)


@contextmanager
def _connected(settings: Settings) -> Iterator[socket.socket]:
    trusted = None
    if settings.security.enabled:
        trusted = ssl.create_default_context(cadata=read_secret(settings, AUTHORITY))
        # It is asked on loopback; its certificate may name a service instead.
        trusted.check_hostname = False
    address = (LOOPBACK, settings.ports.endpoint)
    with socket.create_connection(address, timeout=PROBE_SECONDS) as plain:
        if trusted is None:
            yield plain
        else:
            with trusted.wrap_socket(plain, server_hostname=LOOPBACK) as encrypted:
                yield encrypted


def _said(status: int, text: bytes) -> bytes:
    return bytes([status]) + len(text).to_bytes(4, "big") + text

"""The SQL endpoint as a part of the stack that is started on demand."""

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
from spark_jobs.stack.endpoint_users import ANALYST, is_user
from spark_jobs.stack.errors import EndpointSilentError
from spark_jobs.stack.object_store import store_names
from spark_jobs.stack.parts import Part
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret, random_password
from spark_jobs.storage.conf import session_environment

NAME = ENDPOINT
USER = ANALYST
SECRET = "endpoint"  # noqa: S105 - the name of the secret
PROBE_SECONDS = 5
PULSE_SECONDS = 20
PULSE_FAILURES = 3
# SASL in Hive's protocol: a status byte, four bytes of length, the payload.
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
    """Generate the password if there is none, and with security the files for TLS.

    Raises:
        SettingError: it would be reachable from other machines without TLS, or its account
            does not fit.
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
    """The trust store for Java clients, which do not read PEM; not secret."""
    return endpoint_files(settings) / "ca.p12"


@contextmanager
def served_key_store(settings: Settings) -> Iterator[KeyStore | None]:
    """A new key store for a start of the server, and its password; None without security.

    Raises:
        SecretMissingError: the server was not prepared.
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
    """The URL for JDBC clients."""
    address = f"jdbc:hive2://{LOOPBACK}:{settings.ports.endpoint}"
    if not settings.security.enabled:
        return address
    return f"{address}/;ssl=true;sslTrustStore={quote(str(trust_store_file(settings)))}"


def may_enter(settings: Settings, user: str, password: str) -> bool:
    """Whether the credentials are a user's; a new password takes effect immediately."""
    if user != USER:
        return is_user(settings, user, password)
    try:
        wanted = read_secret(settings, SECRET)
    except SecretMissingError:
        return False
    return hmac.compare_digest(password.encode(), wanted.encode())


def probe_endpoint(settings: Settings) -> str | None:
    """Why the server is not ready; None once its user can log in."""
    try:
        password = read_secret(settings, SECRET)
        with _connected(settings) as client:
            client.sendall(_said(_START, b"PLAIN") + _said(_OK, f"\0{USER}\0{password}".encode()))
            answer = client.recv(1)
            # Closing with unread data would log an error in the server.
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
    """Checks that the user can still log in to the server of this process.

    Attributes:
        asked_at: time of the last check, on the clock of ``time.monotonic``.
        failed: number of consecutive failures.
    """

    settings: Settings
    asked_at: float = field(default_factory=time.monotonic)
    failed: int = 0

    def check(self) -> None:
        """Check the login if it is due; call this about once a second.

        Raises:
            EndpointSilentError: the login failed ``PULSE_FAILURES`` times in a row.
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
        # The check connects to loopback, and the certificate may name a service instead.
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

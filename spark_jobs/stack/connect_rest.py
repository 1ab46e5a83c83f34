"""Kafka Connect's REST API: it requires the client certificate of this stack.

A caller can start connectors, which read files and databases with the worker's rights. The API has
no users, so TLS requires the certificate that the workers have themselves. It was signed by an
authority that has signed nothing else, and whose key was deleted.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from spark_jobs.access.secrets import read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.certificates import (
    CONNECT,
    SERVER_DAYS,
    certificate_name,
    key_store,
    new_authority,
    serves,
    signed,
    trust_store,
)
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.secrets import ensure_secret, write_secret

PASSWORD = "connect-key-store"  # noqa: S105 - the name of the secret
OWN = certificate_name(CONNECT)
TRUSTED = "tls/connect-ca.pem"
# Java does not read PEM.
_KEYS, _TRUST_STORE = "connect.p12", "connect-ca.p12"
_LISTENER = "listeners.https.ssl."


def asks_for_certificate(settings: Settings) -> bool:
    """Whether the workers require a client certificate; not if their listeners are configured."""
    return not settings.kafka_connect.url and "listeners" not in settings.kafka_connect.conf


def prepare_rest(settings: Settings) -> None:
    """Create the certificate of workers and clients, and key stores for Java."""
    if not asks_for_certificate(settings):
        return
    if not _lasts(settings):
        key, authority = new_authority()
        write_secret(settings, TRUSTED, authority.public_bytes(Encoding.PEM).decode())
        write_secret(settings, OWN, signed(CONNECT, key, authority, days=SERVER_DAYS))
    keys = key_store(read_secret(settings, OWN), ensure_secret(settings, PASSWORD))
    _write(_file(settings, _KEYS), keys)
    _write(_file(settings, _TRUST_STORE), trust_store(read_secret(settings, TRUSTED)))


def _lasts(settings: Settings) -> bool:
    """Whether there is a certificate that does not expire soon."""
    if not all(secret_path(settings, name).exists() for name in (OWN, TRUSTED)):
        return False
    authority = load_pem_x509_certificate(read_secret(settings, TRUSTED).encode())
    return serves(read_secret(settings, OWN), authority)


def rest_properties(settings: Settings, number: int) -> dict[str, object]:
    """A worker's listener and its client authentication; call ``prepare_rest`` first.

    Raises:
        SecretMissingError: ``prepare_rest`` was not called.
    """
    _, port = settings.ports.of("connect", number)
    if not asks_for_certificate(settings):
        return {"listeners": f"http://{LOOPBACK}:{port}"}
    password = read_secret(settings, PASSWORD)
    return {
        "listeners": f"https://{LOOPBACK}:{port}",
        "rest.advertised.listener": "https",
        f"{_LISTENER}client.auth": "required",
        f"{_LISTENER}keystore.type": "PKCS12",
        f"{_LISTENER}keystore.location": _file(settings, _KEYS),
        f"{_LISTENER}keystore.password": password,
        f"{_LISTENER}key.password": password,
        f"{_LISTENER}truststore.type": "PKCS12",
        f"{_LISTENER}truststore.location": _file(settings, _TRUST_STORE),
    }


def caller(settings: Settings) -> ssl.SSLContext:
    """A client's TLS context: its certificate, and the authority that it trusts.

    Raises:
        SecretMissingError: no worker was prepared.
    """
    context = ssl.create_default_context(cadata=read_secret(settings, TRUSTED))
    # Read only to raise an error if it is missing; the context takes a path.
    read_secret(settings, OWN)
    context.load_cert_chain(secret_path(settings, OWN))
    return context


def _file(settings: Settings, name: str) -> Path:
    """A file next to the worker's configuration, which contains the password."""
    return settings.state / "kafka" / name


def _write(path: Path, content: bytes) -> None:
    """Replace a file atomically, readable by its owner only; two workers may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.replace(path)

"""Kafka Connect's REST interface: it answers who shows the certificate of this stack.

Whoever may call it can start connectors, which read files and databases as the worker does. It has
no users of its own, so TLS asks each caller for the certificate that the workers have themselves.
It is of an authority that has signed nothing else, and whose key is thrown away.
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
# Java reads these, and no PEM.
_KEYS, _TRUST_STORE = "connect.p12", "connect-ca.p12"
_LISTENER = "listeners.https.ssl."


def asks_for_certificate(settings: Settings) -> bool:
    """Whether the local stack's workers ask their callers; not where they listen elsewhere."""
    return not settings.kafka_connect.url and "listeners" not in settings.kafka_connect.conf


def prepare_rest(settings: Settings) -> None:
    """Make the certificate that workers and callers show, in the forms that Java reads."""
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
    """Whether there is a certificate, and none that ends soon."""
    if not all(secret_path(settings, name).exists() for name in (OWN, TRUSTED)):
        return False
    authority = load_pem_x509_certificate(read_secret(settings, TRUSTED).encode())
    return serves(read_secret(settings, OWN), authority)


def rest_properties(settings: Settings, number: int) -> dict[str, object]:
    """Where a worker listens, and whom it lets in; ``prepare_rest`` comes before.

    Raises:
        SecretMissingError: it did not.
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
    """What a caller shows, and whom it trusts.

    Raises:
        SecretMissingError: no worker was prepared.
    """
    context = ssl.create_default_context(cadata=read_secret(settings, TRUSTED))
    # Read for its error; the context takes a file only.
    read_secret(settings, OWN)
    context.load_cert_chain(secret_path(settings, OWN))
    return context


def _file(settings: Settings, name: str) -> Path:
    """A file beside the worker's configuration, which has its password."""
    return settings.state / "kafka" / name


def _write(path: Path, content: bytes) -> None:
    """Put a file in place in one step, for its owner only; two workers may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_bytes(content)
    fresh.replace(path)

"""Recognises connections to PostgreSQL that failed because of the server's certificate."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from spark_jobs.access.errors import CertificateRefusedError

# Messages of libpq and OpenSSL: an untrusted chain, another host, no TLS.
_CERTIFICATE = ("certificate verify failed", "does not match host name", "server does not support")


def certificate_refusal(dsn: str, error: psycopg.Error) -> CertificateRefusedError | None:
    """The condition behind a failed connection; None if the certificate is not the cause.

    Args:
        dsn: the address that was tried.
        error: what psycopg raised.
    """
    text = str(error)
    if not any(words in text for words in _CERTIFICATE):
        return None
    parts = conninfo_to_dict(dsn)
    return CertificateRefusedError(
        f"PostgreSQL at {parts.get('host')}:{parts.get('port', 5432)}",
        text.strip().splitlines()[-1].rpartition("failed: ")[2],
        authority=Path(str(parts.get("sslrootcert", "~/.postgresql/root.crt"))),
    )

"""Why a connection to PostgreSQL was not made, where the server's certificate is the reason."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from spark_jobs.access.errors import CertificateRefusedError

# The words of libpq and OpenSSL: a chain that does not hold, another host, no TLS at all.
_CERTIFICATE = ("certificate verify failed", "does not match host name", "server does not support")


def certificate_refusal(dsn: str, error: psycopg.Error) -> CertificateRefusedError | None:
    """The condition behind a failed connection; None where it is another one.

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

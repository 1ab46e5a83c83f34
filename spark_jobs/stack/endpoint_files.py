"""What the SQL endpoint has of its own on disk: its directory, and its key store."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.settings import Settings


@dataclass(frozen=True)
class KeyStore:
    """The server's key and certificate: a PKCS#12 file and the password that opens it."""

    file: Path
    password: str = field(repr=False)


def endpoint_files(settings: Settings) -> Path:
    """The directory of what the server has beside results.

    With an account of its own it is another one, which that account can go through.
    """
    return settings.state / ("endpoint-account" if settings.endpoint.account else "endpoint")

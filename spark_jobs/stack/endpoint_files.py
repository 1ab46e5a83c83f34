"""The SQL endpoint's files: its directory and its key store."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.settings import Settings


@dataclass(frozen=True)
class KeyStore:
    """The server's key and certificate: a PKCS#12 file and its password."""

    file: Path
    password: str = field(repr=False)


def endpoint_files(settings: Settings) -> Path:
    """The directory of the server's files, except for results.

    If the server has its own account, it is a different directory that this account can read.
    """
    return settings.state / ("endpoint-account" if settings.endpoint.account else "endpoint")

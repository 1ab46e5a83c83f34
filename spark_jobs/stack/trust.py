"""The certificates that the stack's HTTP clients trust, read once per process.

Reading them takes 17 ms of CPU time. A start probes its parts several times a second, and with a
new context for each client that took a third of a core.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def trusted() -> ssl.SSLContext:
    """The value for ``verify`` of an HTTP client."""
    return httpx.create_ssl_context()

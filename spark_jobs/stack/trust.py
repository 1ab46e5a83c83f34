"""Whose certificates the stack's HTTP clients trust, read once.

A client that reads them for itself computes for 17 ms. A start asks its parts several times a
second whether they serve, which took a third of a core from the parts.
"""

from __future__ import annotations

import ssl
from functools import cache

import httpx


@cache
def trusted() -> ssl.SSLContext:
    """What ``verify`` of an HTTP client should be."""
    return httpx.create_ssl_context()

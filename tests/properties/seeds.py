"""Selects the random cases: a few fixed ones, or as many as a long run requests."""

from __future__ import annotations

import os

CHUNKS = 4
# A long run sets these, and reports the first seed and the number of cases.
FIRST = int(os.environ.get("TIDEMARK_PROPERTY_SEED", "0"))
CASES = int(os.environ.get("TIDEMARK_PROPERTY_CASES", "0"))


def seeds(chunk: int, cases: int) -> range:
    """The seeds of one of ``CHUNKS`` tests, which share this number of cases by default."""
    return range(FIRST + chunk, FIRST + (CASES or cases), CHUNKS)

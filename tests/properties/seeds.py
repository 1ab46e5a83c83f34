"""Which random cases are run: a few that are always the same, or as many as a long run asks for."""

from __future__ import annotations

import os

CHUNKS = 4
# A long run sets these; the first seed and the count of its cases are what it reports.
FIRST = int(os.environ.get("TIDEMARK_PROPERTY_SEED", "0"))
CASES = int(os.environ.get("TIDEMARK_PROPERTY_CASES", "0"))


def seeds(chunk: int, cases: int) -> range:
    """The seeds of one of ``CHUNKS`` tests that share so many cases, if nobody asks for more."""
    return range(FIRST + chunk, FIRST + (CASES or cases), CHUNKS)

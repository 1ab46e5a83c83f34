"""Maintained equals computed again: random queries, random bags, random changes."""

from __future__ import annotations

import os
import random

import pytest

from tests.properties.grammar import Grammar
from tests.properties.maintenance import Engine, difference

# A long run sets these; the seed and the count of its cases are what it reports.
FIRST = int(os.environ.get("TIDEMARK_PROPERTY_SEED", "0"))
CASES = int(os.environ.get("TIDEMARK_PROPERTY_CASES", "160"))
CHUNKS = 8


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_maintained_view_equals_its_sql(chunk: int) -> None:
    engine = Engine()
    for seed in range(FIRST + chunk, FIRST + CASES, CHUNKS):
        rng = random.Random(seed)
        sql = Grammar(rng).query()
        for _ in range(2):
            assert difference(engine, sql, rng) is None, f"seed {seed}"

"""A key that is proved from a query holds for whatever its tables hold."""

from __future__ import annotations

import os
import random

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.relation import When
from tests.properties.grammar import TABLES, Grammar
from tests.properties.maintenance import Engine, canonical, content_of, random_bag

FIRST = int(os.environ.get("TIDEMARK_PROPERTY_SEED", "0"))
CASES = int(os.environ.get("TIDEMARK_PROPERTY_CASES", "160"))
CHUNKS = 4
TYPES = {table: dict.fromkeys(columns, "int") for table, columns in TABLES.items()}


def keyed(engine: Engine, rng: random.Random) -> dict[str, frozenset[str]]:
    """Fill the tables so that their first column, or two, tells rows apart; returns the keys."""
    keys = {}
    for table, columns in TABLES.items():
        width = rng.choice((1, 1, 2))
        rows = {
            row[:width]: row for row in random_bag(rng, len(columns)) if None not in row[:width]
        }
        engine.load(f"{table.replace('.', '_')}_new", columns, list(rows.values()))
        keys[table] = frozenset(columns[:width])
    return keys


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_two_rows_share_a_proved_key(chunk: int) -> None:
    engine = Engine()
    proved = 0
    for seed in range(FIRST + chunk, FIRST + CASES, CHUNKS):
        rng = random.Random(seed)
        query = canonical(Grammar(rng).query())
        for _ in range(3):
            found, _ = maintenance_of(query, keys=keyed(engine, rng), types=TYPES)
            if found.key:
                proved += 1
                content = content_of(query, When.NEW).subquery("content")
                shared = (
                    f"SELECT {', '.join(found.key)} FROM {content.sql(dialect='duckdb')} "
                    f"GROUP BY ALL HAVING COUNT(*) > 1"
                )
                again = engine.connection.execute(shared).fetchall()
                assert not again, f"seed {seed}: {found.key} of {query}"
    assert proved > CASES / CHUNKS / 10

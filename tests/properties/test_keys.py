"""A key that is proved from a query holds for whatever its tables hold."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from spark_jobs.graph.maintenance.describe import maintenance_of
from spark_jobs.graph.maintenance.relation import When
from tests.properties.engine import Engine
from tests.properties.grammar import Grammar
from tests.properties.maintenance import canonical, content_of
from tests.properties.seeds import CHUNKS, seeds
from tests.properties.tables import TYPES, Rows

# Of the queries; the others show duplicates, or one cannot tell.
LEAST_PROVED = 0.2


def keyed(engine: Engine, rng: random.Random) -> dict[str, frozenset[str]]:
    """Fill the tables so that their first column, or two, tells rows apart; returns the keys."""
    keys = {}
    for table, types in TYPES.items():
        width = rng.choice((1, 1, 2))
        made = Rows(rng, types).multiset(12)
        rows = {row[:width]: row for row in made if None not in row[:width]}
        engine.load(f"{table.replace('.', '_')}_new", types, list(rows.values()))
        keys[table] = frozenset(list(types)[:width])
    return keys


def drawn(rng: random.Random) -> tuple[str, str]:
    """A query as written and in canonical form: of three the first that may have a key, if any."""
    narrow = {table: frozenset([next(iter(types))]) for table, types in TYPES.items()}
    for _ in range(3):
        sql = Grammar(rng).query()
        query = canonical(sql)
        if maintenance_of(query, keys=narrow, types=TYPES)[0].key:
            break
    return sql, query


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_two_rows_share_a_proved_key(chunk: int) -> None:
    engine = Engine()
    tried = proved = 0
    for seed in seeds(chunk, 96):
        rng = random.Random(seed)
        sql, query = drawn(rng)
        for _ in range(3):
            found, _ = maintenance_of(query, keys=keyed(engine, rng), types=TYPES)
            tried += 1
            if found.key:
                proved += 1
                content = engine.text(content_of(sql, When.NEW))
                rows = engine.connection.execute(
                    f"SELECT {', '.join(found.key)} FROM ({content}) AS content"
                ).fetchall()
                twice = [row for row, count in Counter(map(str, rows)).items() if count > 1]
                assert not twice, f"seed {seed}: {found.key} of {sql}: {twice}"
    assert proved >= LEAST_PROVED * tried, f"{proved} of {tried}"

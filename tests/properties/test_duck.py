"""Programs and queries as a refresh gives them to DuckDB, against the same SQL unoptimized."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlglot import exp

from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import BIGINT, INT, Kind
from spark_jobs.graph.duck.queries import Translated, translated
from spark_jobs.storage.duck import Duck
from tests.properties.grammar import Grammar
from tests.properties.maintenance import Engine, Row, difference

FIRST = int(os.environ.get("TIDEMARK_PROPERTY_SEED", "0"))
CASES = int(os.environ.get("TIDEMARK_PROPERTY_CASES", "80"))
CHUNKS = 4
# Queries that the grammar writes and the list has no entry for: OFFSET, several DISTINCT, UNION.
MOST_REFUSED = 0.5


class AsRefreshed(Engine):
    """Both: a plain engine, which says what is right, and the one that refreshes use."""

    def __init__(self, duck: Duck) -> None:
        super().__init__()
        self.duck = duck
        self.tried = self.refused = 0

    def load(self, name: str, columns: tuple[str, ...], rows: list[Row]) -> None:
        super().load(name, columns, rows)
        self._give(name, columns, rows, INT)

    def rows(self, query: exp.Expr) -> list[Row]:
        right = super().rows(query)
        self.tried += 1
        try:
            ours = self.duck.fetch(translated(query, self.duck.known).sql)
        except NotTranslatedError:
            self.refused += 1
            return right
        values = [tuple(row.values()) for row in ours.to_pylist()]
        assert sorted(values, key=repr) == sorted(right, key=repr), query.sql(dialect="spark")
        return right

    def create(self, name: str, query: exp.Expr) -> None:
        super().create(name, query)
        self.tried += 1
        try:
            self.duck.compute(name, translated(query, self.duck.known))
        except NotTranslatedError:
            self.refused += 1
            found = self.connection.sql(f"SELECT * FROM {name}")
            self._give(name, found.columns, found.fetchall(), BIGINT)

    def _give(self, name: str, columns: Sequence[str], rows: Sequence[Row], kind: Kind) -> None:
        values = ", ".join(
            f"({', '.join('NULL' if one is None else str(one) for one in row)})" for row in rows
        )
        some = f"VALUES {values}" if rows else f"SELECT {', '.join('NULL' for _ in columns)}"
        typed = ", ".join(f"CAST({one} AS {kind.in_duckdb}) AS {one}" for one in columns)
        text = f"SELECT {typed} FROM ({some}) AS v({', '.join(columns)})"
        text += "" if rows else " WHERE FALSE"
        self.duck.compute(name, Translated(text, dict.fromkeys(columns, kind)))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsRefreshed]:
    spill: Path = tmp_path_factory.mktemp("spill")
    with Duck(memory="1 GiB", spill=spill) as duck:
        yield AsRefreshed(duck)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_program_gives_the_same_rows_as_refreshes_run_it(engine: AsRefreshed, chunk: int) -> None:
    for seed in range(FIRST + chunk, FIRST + CASES, CHUNKS):
        rng = random.Random(seed)
        sql = Grammar(rng).query()
        assert difference(engine, sql, rng) is None, f"seed {seed}"
    assert engine.refused < MOST_REFUSED * engine.tried

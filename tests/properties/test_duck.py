"""Programs and queries as a refresh gives them to DuckDB, against the same SQL unoptimized."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlglot import exp

from spark_jobs.gold.engine.database import Duck, DuckError
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import Kind, kind_of
from spark_jobs.graph.duck.queries import Translated
from spark_jobs.graph.duck.remembered import remembered_translation as translated
from tests.properties.engine import Engine
from tests.properties.histories import run
from tests.properties.seeds import CHUNKS, seeds
from tests.properties.tables import EXACT_TYPES, TYPES, Row, Types, plain, values_query

# Of the queries that the programs are made of; see ``closed`` for what has no entry.
MOST_REFUSED = 0.25


class AsRefreshed(Engine):
    """Both: a plain engine, which says what is right, and the one that refreshes use."""

    def __init__(self, duck: Duck) -> None:
        super().__init__()
        self.duck = duck
        self.tried = 0
        self.refused: Counter[str] = Counter()

    def load(self, name: str, types: Types, rows: Sequence[Row]) -> None:
        super().load(name, types, rows)
        self._give(name, {column: kind_of(kind) for column, kind in types.items()})

    def rows(self, query: exp.Expr) -> list[Row]:
        right = super().rows(query)
        ours = self._translated(query)
        if ours is not None:
            try:
                found = self.duck.fetch(ours.sql).to_pylist()
            except DuckError as error:
                self._no_result(error)
                return right
            values = [tuple(map(plain, row.values())) for row in found]
            assert Counter(values) == Counter(right), query.sql(dialect="spark")
        return right

    def create(self, name: str, query: exp.Expr) -> None:
        super().create(name, query)
        # A view's whole content is translated from its operators, and not as it is written.
        ours = self._translated(query) if name != "published" else None
        try:
            if ours is not None:
                self.duck.compute(name, ours)
                return
        except DuckError as error:
            self._no_result(error)
        self._give(name, {column: _kind(kind) for column, kind in self.types(name).items()})

    def also(self, name: str, known: str) -> None:
        self.create(name, exp.select("*").from_(exp.table_(known)))

    def _translated(self, query: exp.Expr) -> Translated | None:
        self.tried += 1
        try:
            return translated(query, self.duck.known)
        except NotTranslatedError as reason:
            self.refused[re.split(r"[ :(]", reason.what)[0]] += 1
            return None

    def _no_result(self, error: DuckError) -> None:
        """At run time, only rows that tie are left to Spark."""
        assert "an order that leaves ties" in str(error), error
        self.refused["ties"] += 1

    def _give(self, name: str, kinds: dict[str, Kind | None]) -> None:
        """Hand a relation over; what its columns hold in types of neither is left out."""
        rows = self.table(name)
        held = {column: kind for column, kind in kinds.items() if kind is not None}
        kept = [i for i, kind in enumerate(kinds.values()) if kind is not None]
        types = {column: str(kind) for column, kind in held.items()} or {"__none": "int"}
        values = [tuple(row[i] for i in kept) or (1,) for row in rows]
        self.duck.compute(name, Translated(values_query(types, values), held))
        self.duck.known[name.lower()] = kinds


def _kind(in_duckdb: str) -> Kind | None:
    """What DuckDB calls a type, as Spark has it; sums are wider here."""
    words = {"VARCHAR": "string", "TIMESTAMP WITH TIME ZONE": "timestamp", "HUGEINT": "bigint"}
    words |= {"INTEGER": "int", "TIMESTAMP": "timestamp_ntz", '"NULL"': "int"}
    return kind_of(words.get(in_duckdb, in_duckdb.lower()))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsRefreshed]:
    spill: Path = tmp_path_factory.mktemp("spill")
    with Duck(memory="1 GiB", spill=spill) as duck:
        yield AsRefreshed(duck)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_program_gives_the_same_rows_as_refreshes_run_it(engine: AsRefreshed, chunk: int) -> None:
    # The first takes all types, of which most programs are then refused.
    tables = EXACT_TYPES if chunk else TYPES
    engine.tried, engine.refused = 0, Counter()
    for seed in seeds(chunk, 24):
        run(engine, seed, tables)
    print(engine.tried, engine.refused)
    if chunk:
        assert sum(engine.refused.values()) < MOST_REFUSED * engine.tried, engine.refused

"""A program that was derived before is taken again exactly where it would come out the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from spark_jobs.graph.duck.kinds import INT, Kind
from spark_jobs.graph.duck.remembered import remembered_translation
from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance import derived
from spark_jobs.graph.maintenance.derived import derived_program, remembered_program
from spark_jobs.graph.maintenance.program import Program
from spark_jobs.graph.maintenance.relation import When
from spark_jobs.graph.sql import Relation, named_relation
from tests.properties.maintenance import canonical

PARTS = {"k0": "int", "n": "bigint", "nn0": "bigint", "sum0": "bigint"}
TYPES = {"silver.a": {"k": "int", "x": "int"}, "silver.b": {"k": "int", "x": "int"}}
JOINED = canonical(
    "SELECT a.k, SUM(a.x) AS s FROM silver.a AS a JOIN silver.b AS b ON a.k = b.k "
    "JOIN silver.b AS c ON a.x = c.x GROUP BY a.k"
)
PUBLISHED = canonical("SELECT a.k, MAX(a.x) AS m FROM silver.a AS a GROUP BY a.k")


@dataclass
class Named:
    """Tables that record which relations were looked up."""

    changed: frozenset[str] = frozenset({"silver.a"})
    is_large: bool = False
    parts: Mapping[str, str] | None = None
    read: list[str] = field(default_factory=list)

    def content(self, table: str, when: When) -> Relation:
        self.read.append(f"{table} {when}")
        return named_relation(f"{table.replace('.', '_')}_{when}")

    def change(self, table: str) -> Relation:
        self.read.append(table)
        return named_relation(f"{table.replace('.', '_')}_change")

    def published(self) -> Relation:
        self.read.append("published")
        return named_relation("published")

    def large(self, table: str) -> bool:
        del table
        return self.is_large

    def part_types(self, table: str) -> Mapping[str, str] | None:
        return self.parts if table.startswith("state.") else None


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    derived._known.cache_clear()
    yield
    derived._known.cache_clear()


def program(tables: Named, query: str = JOINED, clock: datetime | None = None) -> Program:
    clocks = {} if clock is None else {When.OLD: clock, When.NEW: clock}
    return remembered_program(query, tables, clocks, types=TYPES, last=DeleteInsert(), prefix="_")


@pytest.mark.parametrize(("query", "name"), [(JOINED, "silver.b "), (PUBLISHED, "published")])
def test_a_cached_program_is_reused_after_repeating_its_lookups(query: str, name: str) -> None:
    first, second = Named(), Named()
    found = program(first, query)
    assert program(second, query) is found
    assert sorted(set(first.read)) == sorted(second.read)
    assert any(one.startswith(name) for one in second.read), "relations are named by asking"
    assert repr(found) == repr(
        derived_program(query, Named(), {}, types=TYPES, last=DeleteInsert(), prefix="_")
    )


@pytest.mark.parametrize(
    "other",
    [
        Named(changed=frozenset({"silver.a", "silver.b"})),
        Named(is_large=True),
        Named(parts=PARTS),
    ],
    ids=["another table changed", "a table has grown", "groups lie in parts"],
)
def test_another_lookup_result_gives_another_program(other: Named) -> None:
    found = program(Named())
    fresh = derived_program(JOINED, other, {}, types=TYPES, last=DeleteInsert(), prefix="_")
    assert repr(program(other)) == repr(fresh)
    assert program(Named()) is found, "both are kept"


def test_a_rejected_cached_program_registers_no_relation() -> None:
    program(Named(changed=frozenset({"silver.a", "silver.b"})))
    fresh, second = Named(), Named()
    derived_program(JOINED, fresh, {}, types=TYPES, last=DeleteInsert(), prefix="_")
    program(second)
    assert second.read == fresh.read


def test_another_clock_or_query_gives_another_program() -> None:
    found = program(Named())
    assert program(Named(), canonical("SELECT a.k FROM silver.a AS a")) is not found
    assert program(Named(), clock=datetime(2026, 11, 1, tzinfo=UTC)) is not found


def test_few_programs_of_a_view_are_kept() -> None:
    found = program(Named())
    for digits in range(20, 24):
        program(Named(parts=PARTS | {"sum0": f"decimal({digits},0)"}))
    assert program(Named()) is not found


def test_a_translation_is_kept_for_a_query_and_what_its_relations_have() -> None:
    tree = derived_program(
        "SELECT a.k FROM silver.a AS a", Named(), {}, types=TYPES, last=DeleteInsert(), prefix="_"
    )
    change = tree.change
    assert change is not None
    name = "silver_a_change"
    known = {name: {"k": INT, "__w": INT}}
    found = remembered_translation(change, known)
    assert remembered_translation(change, {name: dict(known[name])}) is found
    assert remembered_translation(change.copy(), known) is not found
    wider = {name: {"k": Kind("bigint"), "__w": INT}}
    assert remembered_translation(change, wider).columns["k"] == Kind("bigint")

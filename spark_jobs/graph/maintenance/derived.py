"""Derives the program of a view from its query, with a cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from sqlglot import exp

from spark_jobs.graph.last_step import RowStep
from spark_jobs.graph.maintenance.program import Program, derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.relation import Tables, When
from spark_jobs.graph.maintenance.states import Cutter

Types = Mapping[str, Mapping[str, str]]
Clocks = Mapping[When, datetime]
# Cache sizes: views per process, and programs per view.
_VIEWS, _PROGRAMS = 128, 4
_T = TypeVar("_T")


def derived_program(
    query: str, tables: Tables, clocks: Clocks, *, types: Types, last: RowStep, prefix: str
) -> Program:
    """Derive the program of a query for the tables that changed.

    Args:
        query: as in ``GoldEntry.query``.
        tables: resolves contents and changes to relations.
        clocks: values of CURRENT_TIMESTAMP before and after; empty if the view does not read it.
        types: column types, by table and lower-case name.
        last: how the change gets into the published table.
        prefix: prefix of the steps' names.

    Raises:
        NotIncrementalError: an operator has no rule.
    """
    root, outputs = build(query)
    cutter = Cutter(types)
    root = cutter.cut(root)
    built, states = (root, outputs), cutter.states
    return derive(built, tables, clocks, last=last, states=states, prefix=prefix, types=types)


def remembered_program(
    query: str, tables: Tables, clocks: Clocks, *, types: Types, last: RowStep, prefix: str
) -> Program:
    """The same, with a cache for processes that refresh a view repeatedly.

    A derivation depends on its tables only through the methods it calls. Calls and results are
    recorded with the program, which is reused while the same calls return the same results: a
    verifying trace, as in Mokhov, Mitchell and Peyton Jones, "Build Systems à la Carte", 2018. The
    caller must not modify the program.

    Raises:
        NotIncrementalError: an operator has no rule.
    """
    frozen = tuple(sorted((table, tuple(columns.items())) for table, columns in types.items()))
    known = _known(query, frozen, tuple(sorted(clocks.items())), last, prefix)
    for one in known:
        if one.still_valid(tables):
            return one.program
    tables_now = _RecordedTables(tables)
    program = derived_program(query, tables_now, clocks, types=types, last=last, prefix=prefix)
    known.insert(0, _Derived(program, tables_now.answers))
    del known[_PROGRAMS:]
    return program


@dataclass(frozen=True)
class _Derived:
    """A program, with the results of the calls that its derivation made."""

    program: Program
    answers: Mapping[tuple[str, ...], object]

    def still_valid(self, tables: Tables) -> bool:
        """Whether all recorded calls return the same results.

        Calls that return relations come last: they register the relation with the engine, which
        would be useless for a program that is not reused.
        """
        tables_now = _RecordedTables(tables)
        calls = sorted(self.answers, key=lambda one: isinstance(self.answers[one], exp.Expr))
        return all(tables_now.call_again(*call) == self.answers[call] for call in calls)


@lru_cache(maxsize=_VIEWS)
def _known(*_: object) -> list[_Derived]:
    """Cached programs of a query, newest first."""
    return []


@dataclass
class _RecordedTables:
    """Records the calls of another ``Tables``, and their results."""

    tables: Tables
    answers: dict[tuple[str, ...], object] = field(default_factory=dict)

    @property
    def changed(self) -> frozenset[str]:
        return self._record(self.tables.changed, "changed")

    def content(self, table: str, when: When) -> exp.Table:
        return self._record(self.tables.content(table, when), "content", table, when)

    def change(self, table: str) -> exp.Table:
        return self._record(self.tables.change(table), "change", table)

    def published(self) -> exp.Table:
        return self._record(self.tables.published(), "published")

    def large(self, table: str) -> bool:
        return self._record(self.tables.large(table), "large", table)

    def part_types(self, table: str) -> Mapping[str, str] | None:
        return self._record(self.tables.part_types(table), "part_types", table)

    def call_again(self, name: str, *arguments: str) -> object:
        """Repeat a recorded call."""
        call: Callable[..., object] | object = getattr(self, name)
        return call(*arguments) if callable(call) else call

    def _record(self, answer: _T, *call: str) -> _T:
        self.answers[call] = answer
        return answer

"""The program of a view from its query; one that was derived before is taken again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from sqlglot import exp

from spark_jobs.graph.maintenance.program import Program, derive
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.relation import Tables, When
from spark_jobs.graph.maintenance.states import Cutter

Types = Mapping[str, Mapping[str, str]]
Clocks = Mapping[When, datetime]
# Views of a process, each with the few programs that it needs.
_VIEWS, _PROGRAMS = 128, 4
_T = TypeVar("_T")


def derived_program(
    query: str, tables: Tables, clocks: Clocks, *, types: Types, prefix: str
) -> Program:
    """Derive the program of a query for the tables that changed.

    Args:
        query: as in ``GoldEntry.query``.
        tables: where the SQL finds contents and changes.
        clocks: what the clock showed at the last refresh and shows at this one; empty where the
            view reads no clock.
        types: of the tables' columns, by table and lower-case name.
        prefix: the names of the steps start with it.

    Raises:
        NotIncrementalError: an operator has no rule.
    """
    root, outputs = build(query)
    cutter = Cutter(types)
    root = cutter.cut(root)
    return derive((root, outputs), tables, clocks, states=cutter.states, prefix=prefix)


def remembered_program(
    query: str, tables: Tables, clocks: Clocks, *, types: Types, prefix: str
) -> Program:
    """The same, for a process that refreshes a view again and again.

    A derivation knows of its tables only what it asks them. What it asked and heard is kept with
    the program, which is taken again while the same questions get the same answers: Mokhov,
    Mitchell and Peyton Jones, "Build Systems à la Carte", 2018, call that a verifying trace. Who
    takes a program must not change it.

    Raises:
        NotIncrementalError: an operator has no rule.
    """
    frozen = tuple(sorted((table, tuple(columns.items())) for table, columns in types.items()))
    known = _known(query, frozen, tuple(sorted(clocks.items())), prefix)
    for one in known:
        if one.holds(tables):
            return one.program
    asked = _Asked(tables)
    program = derived_program(query, asked, clocks, types=types, prefix=prefix)
    known.insert(0, _Derived(program, asked.answers))
    del known[_PROGRAMS:]
    return program


@dataclass(frozen=True)
class _Derived:
    """A program, and what its derivation was told: by question and its arguments."""

    program: Program
    answers: Mapping[tuple[str, ...], object]

    def holds(self, tables: Tables) -> bool:
        """Whether the derivation would hear the same; if so, all was asked that it would ask.

        Relations come last: who is asked for one makes it ready to be read, and nobody reads those
        of a program that is not taken.
        """
        asked = _Asked(tables)
        questions = sorted(self.answers, key=lambda one: isinstance(self.answers[one], exp.Expr))
        return all(asked.ask(*question) == self.answers[question] for question in questions)


@lru_cache(maxsize=_VIEWS)
def _known(*_: object) -> list[_Derived]:
    """Programs of a query, the newest first."""
    return []


@dataclass
class _Asked:
    """Tables that note what is asked, and what they answer."""

    tables: Tables
    answers: dict[tuple[str, ...], object] = field(default_factory=dict)

    @property
    def changed(self) -> frozenset[str]:
        return self._noted(self.tables.changed, "changed")

    def content(self, table: str, when: When) -> exp.Table:
        return self._noted(self.tables.content(table, when), "content", table, when)

    def change(self, table: str) -> exp.Table:
        return self._noted(self.tables.change(table), "change", table)

    def published(self) -> exp.Table:
        return self._noted(self.tables.published(), "published")

    def large(self, table: str) -> bool:
        return self._noted(self.tables.large(table), "large", table)

    def part_types(self, table: str) -> Mapping[str, str] | None:
        return self._noted(self.tables.part_types(table), "part_types", table)

    def ask(self, name: str, *arguments: str) -> object:
        """Ask again what was asked under this name."""
        question: Callable[..., object] | object = getattr(self, name)
        return question(*arguments) if callable(question) else question

    def _noted(self, answer: _T, *question: str) -> _T:
        self.answers[question] = answer.copy() if isinstance(answer, exp.Expr) else answer
        return answer

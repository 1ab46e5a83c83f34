"""Translates a view's full query, from its operators, or says what prevents it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.queries import Known, Translated, translated
from spark_jobs.graph.duck.remembered import FrozenKnown, frozen
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError
from spark_jobs.graph.maintenance.relation import When, Writer
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import Relation, named_relation

_VIEWS = 128


class _NamedTables:
    """Tables under the relation names of the caller."""

    changed: frozenset[str] = frozenset()

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def content(self, table: str, when: When) -> Relation:
        del when
        return named_relation(self._names[table])

    def change(self, table: str) -> Relation:
        raise AssertionError(f"a whole view reads no change of {table}")

    def published(self) -> Relation:
        raise AssertionError("a whole view does not read itself")

    def large(self, table: str) -> bool:
        raise AssertionError(f"a whole view joins no change with {table}")

    def part_types(self, table: str) -> Mapping[str, str] | None:
        del table
        return None


def whole_view(
    entry: GoldEntry, names: Mapping[str, str], known: Known, clock: datetime
) -> Translated:
    """A view's full query in DuckDB's SQL, with columns in order, under the names of the tree.

    Args:
        entry: the view.
        names: relation names of its inputs, by ``layer.name``.
        known: columns of the relations.
        clock: the value of CURRENT_TIMESTAMP.

    Raises:
        NotTranslatedError: it has something that is not on the closed list.
    """
    clocks = ((When.NEW, clock),) if entry.reads_clock else ()
    return _whole(entry.query, tuple(names.items()), frozen(known), clocks)


@lru_cache(maxsize=_VIEWS)
def _whole(
    query: str,
    names: tuple[tuple[str, str], ...],
    known: FrozenKnown,
    clocks: tuple[tuple[When, datetime], ...],
) -> Translated:
    """Cached while the inputs have the same columns: each refresh needs it."""
    try:
        root, outputs = build(query)
    except NotIncrementalError as error:
        raise NotTranslatedError(error.text) from error
    rows = Writer(_NamedTables(dict(names)), dict(clocks)).relation(root, When.NEW)
    found = translated(rows, {name: dict(columns) for name, columns in known})
    return found.renamed(dict(outputs))

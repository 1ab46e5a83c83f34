"""A view's whole content, from its operators, and what speaks against another engine."""

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


class _AsNamed:
    """Tables under names that somebody gave them."""

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
        del table
        return False

    def part_types(self, table: str) -> Mapping[str, str] | None:
        del table
        return None


def whole_view(
    entry: GoldEntry, names: Mapping[str, str], known: Known, clock: datetime
) -> Translated:
    """The rows of a view in DuckDB's words; its columns in their order, under names of the tree.

    Args:
        entry: the view.
        names: of its inputs' relations, by ``layer.name``.
        known: what the relations have.
        clock: what the clock shows.

    Raises:
        NotTranslatedError: it has something that is not on the list.
    """
    clocked = clock if entry.reads_clock else None
    return _whole(entry.query, tuple(names.items()), frozen(known), clocked)


@lru_cache(maxsize=_VIEWS)
def _whole(
    query: str, names: tuple[tuple[str, str], ...], known: FrozenKnown, clock: datetime | None
) -> Translated:
    """One for a query as long as its inputs have the same columns: each refresh asks for it."""
    try:
        root, outputs = build(query)
    except NotIncrementalError as error:
        raise NotTranslatedError(error.text) from error
    clocks = {} if clock is None else {When.NEW: clock}
    rows = Writer(_AsNamed(dict(names)), clocks).relation(root, When.NEW)
    found = translated(rows, {name: dict(columns) for name, columns in known})
    return found.renamed(dict(outputs))

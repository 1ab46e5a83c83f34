"""A view's whole content, from its operators, and what speaks against another engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.queries import Known, Translated, translated
from spark_jobs.graph.maintenance.query import build
from spark_jobs.graph.maintenance.reasons import NotIncrementalError
from spark_jobs.graph.maintenance.relation import When, Writer
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.graph.sql import Relation, named_relation


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
    try:
        root, outputs = build(entry.query)
    except NotIncrementalError as error:
        raise NotTranslatedError(error.text) from error
    clocks = {When.NEW: clock} if entry.reads_clock else {}
    found = translated(Writer(_AsNamed(names), clocks).relation(root, When.NEW), known)
    return found.renamed(dict(outputs))

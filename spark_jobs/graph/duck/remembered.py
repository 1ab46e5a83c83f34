"""Translations that are made once, for a process that refreshes a view again and again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from spark_jobs.graph.duck.kinds import Kind
from spark_jobs.graph.duck.queries import Known, Translated, translated

# Steps of the programs that a process remembers.
_STEPS = 1024
FrozenKnown = tuple[tuple[str, tuple[tuple[str, Kind | None], ...]], ...]


def remembered_translation(query: exp.Expr, known: Known) -> Translated:
    """The same as ``translated``, for a query that is kept and not changed.

    Raises:
        NotTranslatedError: it has something that is not on the list.
    """
    return _translation(_Kept(query), frozen(known))


def frozen(known: Known) -> FrozenKnown:
    """What relations have, as part of a key."""
    return tuple((name, tuple(columns.items())) for name, columns in known.items())


@dataclass(frozen=True, eq=False)
class _Kept:
    """A query that is equal to itself only: two trees are compared by writing them out."""

    query: exp.Expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept) and other.query is self.query

    def __hash__(self) -> int:
        return id(self.query)


@lru_cache(maxsize=_STEPS)
def _translation(kept: _Kept, known: FrozenKnown) -> Translated:
    return translated(kept.query, {name: dict(columns) for name, columns in known})

"""Caches translations, for processes that refresh a view repeatedly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from spark_jobs.graph.duck.kinds import Kind
from spark_jobs.graph.duck.queries import Known, Translated, translated

# Size of the cache: steps of the programs that a process caches.
_STEPS = 1024
FrozenKnown = tuple[tuple[str, tuple[tuple[str, Kind | None], ...]], ...]


def remembered_translation(query: exp.Expr, known: Known) -> Translated:
    """The cached result of ``translated``; the query must not be modified afterwards.

    Raises:
        NotTranslatedError: it has something that is not on the closed list.
    """
    return _translation(_ByIdentity(query), frozen(known))


def frozen(known: Known) -> FrozenKnown:
    """Relations as part of a cache key."""
    return tuple((name, tuple(columns.items())) for name, columns in known.items())


@dataclass(frozen=True, eq=False)
class _ByIdentity:
    """A query compared by identity: comparing two trees would write both out."""

    query: exp.Expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.query is self.query

    def __hash__(self) -> int:
        return id(self.query)


@lru_cache(maxsize=_STEPS)
def _translation(kept: _ByIdentity, known: FrozenKnown) -> Translated:
    return translated(kept.query, {name: dict(columns) for name, columns in known})

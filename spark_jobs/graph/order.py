"""The order of views: cycles, tiers, upstream and downstream."""

from __future__ import annotations

from collections.abc import Mapping


def find_cycles(reads: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Groups of views that depend on each other, each once, as a closed path.

    >>> find_cycles({"a": ("b",), "b": ("a",), "c": ("a",)})
    [('a', 'b', 'a')]
    """
    cycles: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(reads):
        path = _path_back(start, reads, done)
        if path:
            cycles.append(path)
            done.update(path)
    return cycles


def _path_back(
    start: str, reads: Mapping[str, tuple[str, ...]], done: set[str]
) -> tuple[str, ...] | None:
    """The shortest path from a view to itself that avoids ``done``."""
    paths: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for following in sorted(reads.get(path[-1], ())):
            if following == start:
                return (*path, start)
            if following not in seen and following not in done:
                seen.add(following)
                paths.append((*path, following))
    return None


def tiers(reads: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """For each view of an acyclic graph, the length of the longest chain of views upstream.

    >>> tiers({"a": (), "b": ("a",), "c": ("a", "b")})
    {'a': 0, 'b': 1, 'c': 2}
    """
    found: dict[str, int] = {}

    def tier(name: str) -> int:
        if name not in found:
            below = [tier(one) for one in reads[name] if one in reads]
            found[name] = 1 + max(below) if below else 0
        return found[name]

    for name in sorted(reads):
        tier(name)
    return found


def downstream(reads: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """For each view, the views that read it.

    >>> downstream({"a": (), "b": ("a",), "c": ("a", "b")})
    {'a': ('b', 'c'), 'b': ('c',), 'c': ()}
    """
    return {
        name: tuple(sorted(other for other, inputs in reads.items() if name in inputs))
        for name in reads
    }

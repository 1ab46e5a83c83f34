"""Layout of a graph in columns: the order within columns, and the shape of edges."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeVar

# A node of the drawing; sortable, so that the same graph is always drawn the same way.
Spot = TypeVar("Spot", bound=Hashable)
# Each pass orders every column by its neighbours on one side; the best pass wins.
_PASSES: Final = 8


class Place(NamedTuple):
    """A box; with ``passing``, the point where its edge to that reader crosses a column."""

    name: str
    passing: str = ""
    column: int = 0


def laid_out(
    columns: Mapping[str, int], edges: Iterable[tuple[str, str]]
) -> tuple[list[list[Place]], list[list[Place]]]:
    """Order boxes in columns, with places for the edges that pass between them.

    >>> placed, lines = laid_out({"a": 0, "b": 1, "c": 2}, [("a", "b"), ("a", "c")])
    >>> [len(column) for column in placed], [len(line) for line in lines]
    ([1, 2, 1], [2, 3])

    Args:
        columns: the column of each box, from 0 at the left.
        edges: each from a box to one further right.

    Returns:
        the columns from left to right, and each edge as a list of places.
    """
    found: list[list[Place]] = [[] for _ in range(max(columns.values(), default=-1) + 1)]
    for name in sorted(columns):
        found[columns[name]].append(Place(name))
    lines = []
    for left, right in sorted(edges):
        passed = [Place(left, right, at) for at in range(columns[left] + 1, columns[right])]
        for place in passed:
            found[place.column].append(place)
        lines.append([Place(left), *passed, Place(right)])
    return ordered(found, [pair for line in lines for pair in pairwise(line)]), lines


def ordered(
    columns: Sequence[Sequence[Spot]], lines: Collection[tuple[Spot, Spot]]
) -> list[list[Spot]]:
    """Order each column by the mean position of its neighbours, so that few edges cross.

    >>> ordered([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    [['a', 'b'], ['d', 'c']]
    """
    before: dict[Spot, list[Spot]] = defaultdict(list)
    behind: dict[Spot, list[Spot]] = defaultdict(list)
    for start, end in lines:
        before[end].append(start)
        behind[start].append(end)
    found: list[list[Any]] = [sorted(column) for column in columns]
    best, fewest = found, crossings(found, lines)
    for number in range(_PASSES):
        near = behind if number % 2 else before
        found = [list(column) for column in found]
        for column in reversed(found) if number % 2 else found:
            places = _places(found)
            column.sort(key=lambda spot: (_mean(spot, near, places), spot))
        crossed = crossings(found, lines)
        if crossed < fewest:
            best, fewest = found, crossed
    return best


def crossings(columns: Sequence[Sequence[Spot]], lines: Collection[tuple[Spot, Spot]]) -> int:
    """The number of pairs of edges between the same two columns that cross.

    >>> crossings([["a", "b"], ["c", "d"]], [("a", "d"), ("b", "c")])
    1
    """
    at = {spot: (x, y) for x, column in enumerate(columns) for y, spot in enumerate(column)}
    between: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for start, end in lines:
        if start in at and end in at:
            (x, y), (to_x, to_y) = at[start], at[end]
            between[x, to_x].append((y, to_y))
    found = 0
    for pairs in between.values():
        ends: list[int] = []
        for _, row in sorted(pairs):
            found += len(ends) - bisect_right(ends, row)
            insort(ends, row)
    return found


def curve(x: float, y: float, *, to: tuple[float, float], bend: float) -> str:
    """The part of an SVG path from the current point to another, horizontal at both ends.

    >>> curve(0, 10, to=(100, 40), bend=24)
    'C24,10 76,40 100,40'
    """
    to_x, to_y = to
    return f"C{x + bend:.0f},{y:.0f} {to_x - bend:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"


def _places(columns: Sequence[Sequence[Spot]]) -> dict[Spot, float]:
    """The height of each node in its column, from 0 to 1; columns are centred."""
    return {
        spot: (row + 0.5) / len(column) for column in columns for row, spot in enumerate(column)
    }


def _mean(spot: Spot, near: Mapping[Spot, Sequence[Spot]], places: Mapping[Spot, float]) -> float:
    found = [places[one] for one in near.get(spot, ()) if one in places]
    return sum(found) / len(found) if found else places[spot]

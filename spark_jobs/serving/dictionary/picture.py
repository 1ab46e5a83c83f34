"""Draws the lineage of a table: what it is made from on the left, its readers on the right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import NamedTuple

from spark_jobs.graph.drawing import Place, curve, laid_out

# In pixels; the font is monospaced.
_CHARACTER, _PADDING, _HEIGHT, _GAP, _STEP = 7.3, 12, 44, 14, 44
# Height of an edge that passes between boxes.
_PASSING = 4
# How far a picture may shrink before it scrolls: its text must stay readable.
_SMALLEST = 0.75


@dataclass(frozen=True)
class Box:
    """A table or a sink.

    Attributes:
        kind: small text above the name; its first word is the CSS class.
        page: target of a click, or None.
    """

    name: str
    kind: str
    page: str | None = None

    @property
    def width(self) -> float:
        return max(len(self.name), len(self.kind)) * _CHARACTER + 2 * _PADDING


@dataclass(frozen=True)
class Graph:
    """Boxes by id, and edges: pairs of a box's id and a reader's id."""

    boxes: Mapping[str, Box]
    edges: frozenset[tuple[str, str]]

    def around(self, table: str) -> Graph:
        """All upstream and downstream boxes of a table."""
        kept = {table} | self._reached(table, against=True) | self._reached(table, against=False)
        return Graph(
            {name: box for name, box in self.boxes.items() if name in kept},
            frozenset(pair for pair in self.edges if kept.issuperset(pair)),
        )

    def _reached(self, start: str, *, against: bool) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            here = waiting.pop()
            for left, right in self.edges:
                origin, end = (right, left) if against else (left, right)
                if origin == here and end not in found:
                    found.add(end)
                    waiting.append(end)
        return found

    def ranks(self) -> dict[str, int]:
        """The column of each box by name, from 0 at the left: after all its inputs."""
        found: dict[str, int] = {}

        def rank(name: str) -> int:
            if name not in found:
                below = [rank(left) for left, right in self.edges if right == name]
                found[name] = 1 + max(below) if below else 0
            return found[name]

        for name in self.boxes:
            rank(name)
        return found


def draw(graph: Graph, current: str = "") -> str:
    """Inline SVG of an acyclic graph, on one line; ``current`` is highlighted."""
    columns, chains = laid_out(graph.ranks(), graph.edges)
    height = max(map(_tall, columns)) + 2
    places: dict[Place, _Area] = {}
    x = 1.0
    for column in columns:
        width = max(graph.boxes[spot.name].width for spot in column if not spot.passing)
        y = (height - _tall(column)) / 2
        for spot in column:
            places[spot] = _Area(x, y, width, _height(spot))
            y += _height(spot) + _GAP
        x += width + _STEP
    total = x - _STEP + 1
    lines = [_line([places[spot] for spot in chain]) for chain in chains]
    boxes = [
        _box(graph.boxes[spot.name], place, current=spot.name == current)
        for spot, place in sorted(places.items())
        if not spot.passing
    ]
    label = f"Lineage of {current}" if current else "All tables and who reads them"
    return (
        f'<div class="lineage" tabindex="0"><svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'width="{total:.0f}" height="{height:.0f}" viewBox="0 0 {total:.0f} {height:.0f}" '
        f'style="min-width: {_SMALLEST * total:.0f}px">'
        f"<title>{escape(label)}</title>{''.join(lines)}{''.join(boxes)}</svg></div>"
    )


class _Area(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def _height(spot: Place) -> float:
    return _PASSING if spot.passing else _HEIGHT


def _tall(column: list[Place]) -> float:
    return sum(_height(spot) + _GAP for spot in column) - _GAP


def _line(spots: list[_Area]) -> str:
    start = spots[0]
    path = f"M{start.x + start.width:.0f},{start.middle:.0f}"
    for left, right in pairwise(spots):
        begin, end = left.x + left.width, right.x
        bend = min((end - begin) / 2, _STEP)
        path += curve(begin, left.middle, to=(end, right.middle), bend=bend)
        path += f"H{right.x + right.width:.0f}" if right is not spots[-1] else ""
    return f'<path d="{path}"/>'


def _box(box: Box, place: _Area, *, current: bool) -> str:
    style = f"{box.kind.split()[0].strip(',')}{' current' if current else ''}"
    left = place.x + _PADDING
    drawn = (
        f'<g class="{escape(style)}"><rect x="{place.x:.0f}" y="{place.y:.0f}" '
        f'width="{place.width:.0f}" height="{_HEIGHT}" rx="6"/>'
        f'<text class="kind" x="{left:.0f}" y="{place.y + 17:.0f}">{escape(box.kind)}</text>'
        f'<text x="{left:.0f}" y="{place.y + 34:.0f}">{escape(box.name)}</text></g>'
    )
    return f'<a href="{escape(box.page)}">{drawn}</a>' if box.page and not current else drawn

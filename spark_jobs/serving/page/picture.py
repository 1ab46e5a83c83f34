"""Lays out the boxes and edges of the page's picture: coordinates in pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from spark_jobs.graph.drawing import Place, curve, laid_out
from spark_jobs.serving.page.facts import Card, PageFacts

BOX_WIDTH: Final = 212
BOX_HEIGHT: Final = 44
_COLUMN: Final = BOX_WIDTH + 64
_ROW: Final = BOX_HEIGHT + 12
# The height of an edge that passes between boxes.
_PASSING: Final = 10
_MARGIN: Final = 8
_HEAD: Final = 30
# Characters of a name that fit into a box; the tooltip has the whole name.
_LETTERS: Final = 26


@dataclass(frozen=True)
class Box:
    """A card with the upper left corner of its box."""

    card: Card
    x: int
    y: int

    @property
    def title(self) -> str:
        return _short(self.card.title, _LETTERS)

    @property
    def line(self) -> str:
        """The text below the name."""
        words = " · ".join(filter(None, (self.card.state, self.card.note)))
        return _short(words, _LETTERS + 3)


@dataclass(frozen=True)
class Picture:
    """The picture: size, column titles with x, boxes, and SVG paths of edges."""

    width: int
    height: int
    heads: tuple[tuple[int, str], ...]
    boxes: tuple[Box, ...]
    lines: tuple[str, ...]


def picture(facts: PageFacts) -> Picture:
    """Columns from left to right, each card near its inputs and readers."""
    cards = {card.name: card for card in facts.cards}
    edges = [(start, end) for start, end in facts.edges if start in cards and end in cards]
    columns, lines = laid_out({name: card.column for name, card in cards.items()}, edges)
    tallest = max(map(_tall, columns), default=_ROW)
    middles = {
        place: middle for column in columns for place, middle in _middles(column, tallest).items()
    }
    return Picture(
        width=2 * _MARGIN + len(columns) * _COLUMN - (_COLUMN - BOX_WIDTH),
        height=_HEAD + tallest,
        heads=tuple((_left(at), head) for at, head in enumerate(facts.columns)),
        boxes=tuple(
            Box(cards[place.name], _left(at), middles[place] - BOX_HEIGHT // 2)
            for at, column in enumerate(columns)
            for place in column
            if not place.passing
        ),
        lines=tuple(
            _line([(_left(_column(place, cards)), middles[place]) for place in line])
            for line in lines
        ),
    )


def _column(place: Place, cards: Mapping[str, Card]) -> int:
    return place.column if place.passing else cards[place.name].column


def _left(column: int) -> int:
    return _MARGIN + column * _COLUMN


def _height(place: Place) -> int:
    return _PASSING if place.passing else _ROW


def _tall(column: list[Place]) -> int:
    return sum(map(_height, column))


def _middles(column: list[Place], height: int) -> dict[Place, int]:
    """The heights of a column's places, spread over the picture."""
    share, above, found = height / max(_tall(column), 1), 0.0, {}
    for place in column:
        found[place] = _HEAD + round((above + _height(place) / 2) * share)
        above += _height(place)
    return found


def _line(points: list[tuple[int, int]]) -> str:
    """The SVG path from the right side of one box to the left side of another, past others."""
    (x, y), *others = points
    path = f"M{x + BOX_WIDTH},{y}"
    for (left, at), (to_x, to_y) in pairwise(points):
        begin = left + BOX_WIDTH
        path += curve(begin, at, to=(to_x, to_y), bend=max((to_x - begin) // 2, 24))
        path += f"H{to_x + BOX_WIDTH}" if (to_x, to_y) != others[-1] else ""
    return path


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"

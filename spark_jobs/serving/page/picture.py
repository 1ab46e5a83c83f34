"""Lays out the boxes and edges of the page's picture: coordinates in pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spark_jobs.graph.drawing import curve, ordered
from spark_jobs.serving.page.facts import Card, PageFacts

BOX_WIDTH: Final = 212
BOX_HEIGHT: Final = 44
_COLUMN: Final = BOX_WIDTH + 64
_ROW: Final = BOX_HEIGHT + 12
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
    columns = [
        [name for name, card in cards.items() if card.column == at] for at in range(_last(facts))
    ]
    tallest = max(map(len, columns), default=0)
    boxes = {
        name: Box(
            cards[name],
            _MARGIN + at * _COLUMN,
            _HEAD + (2 * row + 1) * tallest * _ROW // (2 * len(column)) - _ROW // 2,
        )
        for at, column in enumerate(ordered(columns, facts.edges))
        for row, name in enumerate(column)
    }
    return Picture(
        width=2 * _MARGIN + len(columns) * _COLUMN - (_COLUMN - BOX_WIDTH),
        height=_HEAD + max(tallest, 1) * _ROW,
        heads=tuple((_MARGIN + at * _COLUMN, head) for at, head in enumerate(facts.columns)),
        boxes=tuple(boxes.values()),
        lines=tuple(
            _line(boxes[start], boxes[end])
            for start, end in facts.edges
            if start in boxes and end in boxes
        ),
    )


def _last(facts: PageFacts) -> int:
    return max((card.column for card in facts.cards), default=-1) + 1


def _line(start: Box, end: Box) -> str:
    """The SVG path from the right side of one box to the left side of another."""
    x, y = start.x + BOX_WIDTH, start.y + BOX_HEIGHT // 2
    to_x, to_y = end.x, end.y + BOX_HEIGHT // 2
    bend = max((to_x - x) // 2, 24)
    return f"M{x},{y}{curve(x, y, to=(to_x, to_y), bend=bend)}"


def _short(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"

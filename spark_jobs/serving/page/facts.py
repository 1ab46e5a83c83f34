"""The content of the page as plain values; ``cards`` fills them, ``picture`` lays them out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

# An empty cell.
NOTHING: Final = "-"


class Tone(StrEnum):
    """How good a state is. The state's word says it too, for readers who cannot see colours."""

    GOOD = "good"
    PLAIN = "plain"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True)
class Card:
    """A table or sink.

    Attributes:
        name: the table's name in SQL, or the sink's name in reports.
        column: column in the picture, from 0 at the left.
        note: text next to the state in the picture.
        cells: the row in the section's table, in the order of its heads.
        runbook: where to start if the state is bad.
    """

    name: str
    column: int
    description: str
    state: str
    tone: Tone
    note: str = ""
    cells: tuple[str, ...]
    runbook: str

    @property
    def title(self) -> str:
        """The name without the layer, which the column shows."""
        return self.name.partition(".")[2]


@dataclass(frozen=True)
class Section:
    """A table below the picture; ``heads`` are the column titles of its cards."""

    title: str
    heads: tuple[str, ...]
    cards: tuple[Card, ...]


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """The content of the page.

    Attributes:
        columns: titles of the picture's columns.
        edges: pairs of a card's name and the name of a reader.
        attention: one line per problem, with its runbook.
    """

    project: str
    at: datetime
    columns: tuple[str, ...]
    sections: tuple[Section, ...]
    edges: tuple[tuple[str, str], ...]
    attention: tuple[str, ...]

    @property
    def cards(self) -> tuple[Card, ...]:
        return tuple(card for section in self.sections for card in section.cards)

"""What the page says, as plain values; ``page_cards`` fills them, the picture places them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

# In a cell that has nothing to say.
NOTHING: Final = "-"
# Airflow's own pages, from where its api-server serves this one.
AIRFLOW_PAGES: Final = ".."


class Tone(StrEnum):
    """How good a state is; the state's word says it too, as colours are not for everybody."""

    GOOD = "good"
    PLAIN = "plain"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True)
class Link:
    """Words that lead somewhere.

    Attributes:
        to: the address; empty: the words alone.
        in_airflow: a page of Airflow's, so that it leads nowhere from a copy of this page.
    """

    words: str
    to: str = ""
    in_airflow: bool = False


@dataclass(frozen=True)
class Attention:
    """Something that is wrong, and where to begin."""

    text: str
    runbook: Link


@dataclass(frozen=True, kw_only=True)
class IncidentLine:
    """A fault that people were told of, from its first failure to its end.

    Attributes:
        about: the table, or the DAG where it is about more than one.
        state: open or resolved.
        began: when it failed first.
        lasted: until its end, or until now.
        times: how often the task failed for it.
    """

    about: str
    state: str
    tone: Tone
    condition: str
    message: str
    began: str
    lasted: str
    times: int
    links: tuple[Link, ...]


@dataclass(frozen=True, kw_only=True)
class Card:
    """A table or a sink.

    Attributes:
        name: as SQL names the table; of a sink, as it reports.
        column: of the picture, from the left, from 0.
        note: what the picture says beside the state.
        cells: the row below the picture, in the order of its section's heads.
        runbook: where to begin when the state is bad.
        links: to pages about it.
    """

    name: str
    column: int
    description: str
    state: str
    tone: Tone
    note: str = ""
    cells: tuple[str, ...]
    runbook: str
    links: tuple[Link, ...] = ()

    @property
    def title(self) -> str:
        """The name without the layer, which the column says."""
        return self.name.partition(".")[2]


@dataclass(frozen=True)
class Section:
    """A table under the picture; ``heads`` names the cells of its cards."""

    title: str
    heads: tuple[str, ...]
    cards: tuple[Card, ...]


@dataclass(frozen=True, kw_only=True)
class PageFacts:
    """Everything that the page says.

    Attributes:
        columns: the heads of the picture's columns.
        edges: pairs of a card's name and of one that reads it.
        attention: what is wrong.
        incidents: what was wrong lately, those that are open first.
    """

    project: str
    at: datetime
    columns: tuple[str, ...]
    sections: tuple[Section, ...]
    edges: tuple[tuple[str, str], ...]
    attention: tuple[Attention, ...]
    incidents: tuple[IncidentLine, ...] = ()

    @property
    def cards(self) -> tuple[Card, ...]:
        return tuple(card for section in self.sections for card in section.cards)

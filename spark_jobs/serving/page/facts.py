"""The content of the page as plain values; ``cards`` fills them, ``picture`` lays them out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from spark_jobs.serving.page.trends import Trend

# An empty cell.
NOTHING: Final = "-"
# Airflow's own pages, from where its api-server serves this one.
AIRFLOW_PAGES: Final = ".."


class Tone(StrEnum):
    """How good a state is. The state's word says it too, for readers who cannot see colours."""

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
    """A fault that was alerted, from its first failure to its end.

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
    """A table or sink.

    Attributes:
        name: the table's name in SQL, or the sink's name in reports.
        column: column in the picture, from 0 at the left.
        note: text next to the state in the picture.
        cells: the row in the section's table, in the order of its heads.
        runbook: where to start if the state is bad.
        links: to pages about it.
        trends: charts of the last 30 days.
        history: its last attempts, in the order of ``history.HEADS``.
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
    trends: tuple[Trend, ...] = ()
    history: tuple[tuple[str, ...], ...] = ()

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
        attention: the problems, each with its runbook.
        incidents: recent incidents, open ones first.
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

"""One difference between two manifests: what it is, how far it reaches, and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What is declared."""

    SOURCE = "source"
    SILVER = "silver"
    GOLD = "gold"
    SUITE = "suite"
    SINK = "sink"
    SETTING = "setting"


class Action(StrEnum):
    """What became of a declaration."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class Category(StrEnum):
    """How far a change reaches."""

    # Rows, or what a column that others read means, differ.
    BREAKING = "breaking"
    # Others do not notice: something was added.
    NON_BREAKING = "non-breaking"
    # Nothing is computed.
    METADATA = "metadata"


class Work(StrEnum):
    """What is done about a change."""

    NOTHING = "nothing"
    CREATE_TOPIC = "create the topic"
    CAPTURE = "capture the table"
    SNAPSHOT = "read its rows"
    LOAD_FILE = "load its file"
    START_STREAM = "start its stream"
    RESTART_STREAM = "restart its stream"
    STOP_STREAM = "stop its stream"
    FIRST_BUILD = "first build"
    RECOMPUTE = "recompute"
    COMPUTE_COLUMNS = "compute the columns that differ"
    FOLLOW = "follow the changed rows"
    DELIVER = "deliver all rows"
    RESCHEDULE = "reschedule"
    METADATA = "take up the metadata"
    KEEP = "keep the table until tidemark drop"
    RESTART_PARTS = "tidemark stack up, which asks before it restarts parts"


# What takes the time and the cores that a refresh takes.
EXPENSIVE = frozenset({Work.FIRST_BUILD, Work.RECOMPUTE, Work.COMPUTE_COLUMNS})
# What nobody gets back by applying the files of before.
DESTRUCTIVE = frozenset({Work.STOP_STREAM, Work.KEEP})


@dataclass(frozen=True)
class Cost:
    """What a computation is likely to take.

    Attributes:
        rows: rows of the inputs that it reads; None where nobody knows.
        seconds: what the ledger says that the last one took; None without experience.
    """

    rows: int | None = None
    seconds: float | None = None

    @property
    def text(self) -> str:
        """For people; empty where nothing is known.

        >>> Cost(rows=1200, seconds=3.25).text
        '1,200 rows read, about 3.2 s'
        """
        parts = []
        if self.rows is not None:
            parts.append(f"{self.rows:,} rows read")
        if self.seconds is not None:
            parts.append(f"about {self.seconds:.1f} s")
        return ", ".join(parts)

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {"rows": self.rows, "seconds": self.seconds}


UNKNOWN_COST = Cost()


@dataclass(frozen=True, kw_only=True)
class Change:
    """What one declaration's difference means.

    Attributes:
        name: as users write it: ``silver.orders``, ``orders`` of a source, a setting's key.
        work: what is done, in its order.
        details: what differs, in words; one line each.
        reaches: the gold views downstream that will change with it.
        untouched: the readers that read none of what differs.
        cost: of the computation in ``work``.
        file: where it is declared; None of a setting.
    """

    kind: Kind
    name: str
    action: Action
    category: Category
    work: tuple[Work, ...] = (Work.NOTHING,)
    details: tuple[str, ...] = ()
    reaches: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    cost: Cost = UNKNOWN_COST
    file: str | None = None

    @property
    def expensive(self) -> bool:
        """Whether something is computed that has run before, or for the first time."""
        return bool(EXPENSIVE & set(self.work))

    @property
    def destructive(self) -> bool:
        """Whether something ends."""
        return bool(DESTRUCTIVE & set(self.work))

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "kind": self.kind.value,
            "name": self.name,
            "action": self.action.value,
            "category": self.category.value,
            "work": [one.name.lower() for one in self.work],
            "details": list(self.details),
            "reaches": list(self.reaches),
            "untouched": list(self.untouched),
            "cost": self.cost.as_dict(),
            "file": self.file,
        }

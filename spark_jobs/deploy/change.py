"""One difference between two manifests: its category, its reach, and the work it causes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class Kind(StrEnum):
    """The kind of declaration."""

    SOURCE = "source"
    SILVER = "silver"
    GOLD = "gold"
    SUITE = "suite"
    SINK = "sink"
    SETTING = "setting"


class Action(StrEnum):
    """What happened to a declaration."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"

    @classmethod
    def of(cls, was: bool, now: bool) -> Self:  # noqa: FBT001 - read as a pair
        """From whether it was declared, and whether it is."""
        if was and now:
            return cls.CHANGED
        return cls.ADDED if now else cls.REMOVED


class Category(StrEnum):
    """How far a change reaches."""

    # Rows differ, or the meaning of a column that others read.
    BREAKING = "breaking"
    # Something was added; readers are not affected.
    NON_BREAKING = "non-breaking"
    # Only metadata; nothing is computed.
    METADATA = "metadata"


class Work(StrEnum):
    """The work for a change."""

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


# Work as expensive as a refresh.
EXPENSIVE = frozenset({Work.FIRST_BUILD, Work.RECOMPUTE, Work.COMPUTE_COLUMNS})
# Work that cannot be undone by applying the old files.
DESTRUCTIVE = frozenset({Work.STOP_STREAM, Work.KEEP})


@dataclass(frozen=True)
class Cost:
    """The expected cost of a computation.

    Attributes:
        rows: input rows to read; None if unknown.
        seconds: duration of the last one in the ledger; None if unknown.
    """

    rows: int | None = None
    seconds: float | None = None

    @property
    def text(self) -> str:
        """Text for users; empty if nothing is known.

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
        """As a JSON object with the keys ``rows`` and ``seconds``."""
        return {"rows": self.rows, "seconds": self.seconds}


UNKNOWN_COST = Cost()


@dataclass(frozen=True, kw_only=True)
class Change:
    """The difference of one declaration, and its consequences.

    Attributes:
        name: as users write it: ``silver.orders``, ``orders`` for a source, or a setting's key.
        work: the work to do, in order.
        details: the differences as text, one line each.
        reaches: downstream gold views that change with it.
        untouched: readers that read nothing of what differs.
        cost: cost of the computation in ``work``.
        file: where it is declared; None for a setting.
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
        """Whether anything is computed."""
        return bool(EXPENSIVE & set(self.work))

    @property
    def destructive(self) -> bool:
        """Whether anything is stopped or dropped."""
        return bool(DESTRUCTIVE & set(self.work))

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes by name."""
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

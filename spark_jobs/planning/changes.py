"""What moved since the last publication: one change per input, from versions that were observed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spark_jobs.names import TableName, TableVersion


class ChangeKind(StrEnum):
    """How an input differs from what was last published."""

    UNCHANGED = "unchanged"
    # The published content does not come from this input at all yet.
    ADDED = "added"
    CHANGED = "changed"
    # Another table lies at the same place now.
    RECREATED = "recreated"
    # The same table, but its history is shorter than what was published from.
    REWOUND = "rewound"
    # The tick pinned a version that is older than the published one.
    OLDER = "older"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class Movement:
    """What a range of an input's versions holds, from its log alone.

    Attributes:
        rows_changed: whether any commit touched rows or columns; compaction and the like do not.
        fed: whether the change feed has every commit of the range.
        reshaped: whether the columns changed.
        rows: about how many rows changed; None where the log does not say.
        total: rows of the table at the end of the range; None where its log does not count them.
    """

    rows_changed: bool = True
    fed: bool = False
    reshaped: bool = False
    rows: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class InputObservation:
    """An input as it was found.

    Attributes:
        before: what the published content was computed from; None before the first publication.
        pinned: the version that the tick pinned; None where no table was found.
        current: the table's newest version now.
        movement: what the commits after ``before`` up to ``pinned`` hold.
    """

    table: TableName
    before: TableVersion | None
    pinned: TableVersion | None
    current: TableVersion | None
    movement: Movement = Movement()


@dataclass(frozen=True, kw_only=True)
class InputChange:
    """An input and the range of versions that a refresh has to take up."""

    table: TableName
    kind: ChangeKind
    before: TableVersion | None
    after: TableVersion | None
    movement: Movement = Movement()

    def __str__(self) -> str:
        old = "" if self.before is None else f"@{self.before.version}"
        new = "" if self.after is None else f"@{self.after.version}"
        if not old or old == new:
            return f"{self.table}{new}"
        return f"{self.table}{old}→{new or 'none'}"

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "table": str(self.table),
            "kind": self.kind.value,
            "before": None if self.before is None else self.before.version,
            "after": None if self.after is None else self.after.version,
            "rows": self.movement.rows if self.kind is ChangeKind.CHANGED else None,
        }


def input_change(seen: InputObservation) -> InputChange:
    """Name the change of one input."""
    return InputChange(
        table=seen.table,
        kind=_kind(seen),
        before=seen.before,
        after=seen.pinned,
        movement=seen.movement,
    )


def _kind(seen: InputObservation) -> ChangeKind:
    before, pinned, current = seen.before, seen.pinned, seen.current
    # What the tick pinned must still be there to be read.
    if pinned is None or current is None or pinned.table_id != current.table_id:
        return ChangeKind.MISSING
    if before is None:
        return ChangeKind.ADDED
    if before.table_id != pinned.table_id:
        return ChangeKind.RECREATED
    if current.version < before.version:
        return ChangeKind.REWOUND
    if pinned.version < before.version:
        return ChangeKind.OLDER
    changed = pinned.version > before.version and seen.movement.rows_changed
    return ChangeKind.CHANGED if changed else ChangeKind.UNCHANGED

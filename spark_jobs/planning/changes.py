"""The change of each input since the last publication, from observed versions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from spark_jobs.names import TableName, TableVersion


class ChangeKind(StrEnum):
    """How an input differs from its published version."""

    UNCHANGED = "unchanged"
    # The published content does not depend on this input yet.
    ADDED = "added"
    CHANGED = "changed"
    # The table was dropped and recreated.
    RECREATED = "recreated"
    # The table lost the published version: an older state of it was put back, and perhaps written.
    REWOUND = "rewound"
    # The tick pinned an older version than the published one.
    OLDER = "older"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class Movement:
    """The changes in a range of an input's versions, from its log alone.

    Attributes:
        rows_changed: whether any commit changed rows or columns; compactions do not.
        fed: whether the change feed covers the whole range.
        reshaped: whether columns changed.
        rows: approximate number of changed rows; None if the log has no counts.
        total: rows of the table at the end of the range; None if the log has no counts.
    """

    rows_changed: bool = True
    fed: bool = False
    reshaped: bool = False
    rows: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class InputObservation:
    """The observed versions of an input.

    Attributes:
        before: the published version; None before the first publication.
        pinned: the version that the tick pinned; None if the table does not exist.
        current: the newest version.
        movement: changes after ``before`` up to ``pinned``.
        rewritten: whether the published version is now another commit of that number.
    """

    table: TableName
    before: TableVersion | None
    pinned: TableVersion | None
    current: TableVersion | None
    movement: Movement = Movement()
    rewritten: bool = False


@dataclass(frozen=True, kw_only=True)
class InputChange:
    """An input, and the versions that a refresh has to process."""

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
        """As a JSON object.

        Returns:
            ``table``, ``kind``, the versions ``before`` and ``after`` (None: no such version), and
                ``rows``: how many rows changed, None if unknown or if the input did not change.
        """
        return {
            "table": str(self.table),
            "kind": self.kind.value,
            "before": None if self.before is None else self.before.version,
            "after": None if self.after is None else self.after.version,
            "rows": self.movement.rows if self.kind is ChangeKind.CHANGED else None,
        }


def input_change(seen: InputObservation) -> InputChange:
    """Classify the change of one input."""
    return InputChange(
        table=seen.table,
        kind=_kind(seen),
        before=seen.before,
        after=seen.pinned,
        movement=seen.movement,
    )


def _kind(seen: InputObservation) -> ChangeKind:
    before, pinned, current = seen.before, seen.pinned, seen.current
    # The pinned table must still exist.
    if pinned is None or current is None or pinned.table_id != current.table_id:
        return ChangeKind.MISSING
    if before is None:
        return ChangeKind.ADDED
    if before.table_id != pinned.table_id:
        return ChangeKind.RECREATED
    if current.version < before.version or seen.rewritten:
        return ChangeKind.REWOUND
    if pinned.version < before.version:
        return ChangeKind.OLDER
    changed = pinned.version > before.version and seen.movement.rows_changed
    return ChangeKind.CHANGED if changed else ChangeKind.UNCHANGED

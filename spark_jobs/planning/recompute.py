"""Computing a view again on request: which rows, and at which versions of its inputs.

The versions are those of the publication wherever that can be, so that what differs is what was
wrong, and the rows that are not computed again stay true to the versions that the table names.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.planning.changes import ChangeKind, input_change
from spark_jobs.planning.decision import Decision, Full, Range, Reason, ReasonCode, Skip
from spark_jobs.planning.plan import RefreshPlan, ViewObservation, input_missing
from spark_jobs.planning.ranges import RowRange, TimeRange, row_range, time_column
from spark_jobs.planning.vector import VersionVector

# What people call each of them.
RECOMPUTE_WORDS = {ReasonCode.REPLAYED: "replay", ReasonCode.BACKFILLED: "backfill"}
# Values of these types cannot be compared, so that rows cannot be told apart.
_INCOMPARABLE = ("map<", "variant")


@dataclass(frozen=True, kw_only=True)
class Recompute:
    """What somebody asks for.

    Attributes:
        code: one of ``RECOMPUTED``.
        time: None: the whole view.
        piece: how much of the range is computed at once; None: all of it.
    """

    code: ReasonCode
    time: TimeRange | None = None
    piece: timedelta | None = None

    @classmethod
    def again(cls, code: str, scope: dict[str, Any] | None) -> Self:
        """What an attempt was asked for, from its row of the ledger."""
        rows = None if scope is None else RowRange.from_dict(scope)
        return cls(
            code=ReasonCode(code),
            time=None if rows is None else rows.time,
            piece=None if rows is None else rows.piece,
        )


def plan_recompute(
    entry: GoldEntry,
    seen: ViewObservation,
    *,
    tick: str,
    clock: datetime,
    asked: Recompute,
    readable: bool,
) -> RefreshPlan:
    """Decide what is computed again, and at which versions.

    Args:
        entry: the view.
        seen: the view with its inputs at their newest versions.
        tick: names the request.
        clock: what the clock shows to the query.
        asked: what is wanted.
        readable: whether the inputs can still be read at the versions that are published.
    """
    changes = tuple(input_change(one) for one in seen.inputs)
    missing = input_missing(changes)
    obstacle = _vector_obstacle(seen, readable=readable)
    chosen = {one.table: one.before if obstacle is None else one.pinned for one in seen.inputs}
    decision: Decision
    if asked.code is ReasonCode.BACKFILLED and seen.parked is not None:
        decision = Skip(seen.parked)
    elif missing is not None:
        decision = missing
    else:
        decision = _decision(entry, seen, asked, obstacle)
    return RefreshPlan(
        view=entry.name,
        tick=tick,
        attempt_id="",
        fingerprint=entry.fingerprint,
        decision=decision,
        vector=VersionVector({table: one for table, one in chosen.items() if one is not None}),
        changes=(),
        clock=clock,
    )


def range_obstacle(entry: GoldEntry, seen: ViewObservation) -> str | None:
    """Why the rows of a range alone would not make the table its SQL; None where they do.

    The rows outside of the range stay as they are published, so they must be those that this SQL
    gives at the published versions.
    """
    published = seen.published
    if published is None:
        return "nothing is published yet"
    if time_column(entry) is None:
        return "the view has no time column"
    if published.fingerprint != entry.fingerprint:
        return "its definition changed"
    if published.epoch != seen.epoch:
        return f"epoch {seen.epoch} was begun"
    if seen.intruder is not None:
        return f"somebody else wrote version {seen.intruder.version}"
    if entry.reads_clock or not entry.deterministic:
        return "its rows depend on when they are computed"
    if any(kind in one.type for one in entry.columns for kind in _INCOMPARABLE):
        return "rows with a column of type map or variant cannot be compared"
    return None


def _vector_obstacle(seen: ViewObservation, *, readable: bool) -> str | None:
    """Why the published versions cannot be computed from again; None where they can."""
    if seen.published is None:
        return "nothing is published yet"
    kinds = {input_change(one).kind for one in seen.inputs}
    lost = kinds & {ChangeKind.ADDED, ChangeKind.RECREATED, ChangeKind.REWOUND}
    if lost or not readable:
        return "the published versions of its inputs were removed"
    return None


def _decision(
    entry: GoldEntry, seen: ViewObservation, asked: Recompute, obstacle: str | None
) -> Decision:
    word = RECOMPUTE_WORDS[asked.code]
    if asked.time is None:
        return Full(Reason(asked.code, f"{word} of the whole view"))
    column = time_column(entry)
    obstacle = obstacle or range_obstacle(entry, seen)
    if obstacle is not None or column is None:
        return Full(Reason(asked.code, f"{word} of the whole view, not of a range: {obstacle}"))
    rows = row_range(column, asked.time, piece=asked.piece)
    return Range(Reason(asked.code, f"{word} of the {rows}"), rows)

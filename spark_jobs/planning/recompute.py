"""Plans recomputations: which rows, and at which versions of the inputs.

If possible these are the published versions. Then a difference shows what was wrong, and rows
outside of the range still match the versions that the table records.
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

# Names of the reasons for users.
RECOMPUTE_WORDS = {ReasonCode.REPLAYED: "replay", ReasonCode.BACKFILLED: "backfill"}
# Types that cannot be compared, so that rows cannot be identified.
_INCOMPARABLE = ("map<", "variant")


@dataclass(frozen=True, kw_only=True)
class Recompute:
    """A request to recompute a view.

    Attributes:
        code: one of ``RECOMPUTED``.
        time: the time range; None: the whole view.
        piece: length of a piece that is computed at once; None: the whole range.
    """

    code: ReasonCode
    time: TimeRange | None = None
    piece: timedelta | None = None

    @classmethod
    def again(cls, code: str, scope: dict[str, Any] | None) -> Self:
        """The request of an attempt, from its row in the ledger.

        Args:
            code: the code of the attempt's reason.
            scope: from ``RowRange.as_dict``; None: the whole view.

        Raises:
            ValueError: the code is unknown.
        """
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
    """Plan a recomputation: what to compute, and at which versions.

    Args:
        entry: the view.
        seen: the view's observation, with inputs at their newest versions.
        tick: id of the replay.
        clock: the value of CURRENT_TIMESTAMP.
        asked: the request.
        readable: whether the inputs can still be read at the published versions.
    """
    changes = tuple(input_change(one) for one in seen.inputs)
    missing = input_missing(changes)
    obstacle = _vector_obstacle(entry, seen, readable=readable)
    chosen = {one.table: one.before if obstacle is None else one.pinned for one in seen.inputs}
    decision: Decision
    # Other reasons to skip are for refreshes, whose next run picks up what this one left. No other
    # run computes these rows, and the published versions show whole transactions.
    parked = None if asked.code is not ReasonCode.BACKFILLED else seen.parked
    if parked is not None and parked.code is ReasonCode.VIEW_PINNED:
        decision = Skip(parked)
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
    """Why recomputing a range would not make the table equal to its SQL; None if it would.

    Rows outside of the range stay, so they must be the result of this SQL at the published
    versions.
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


def _vector_obstacle(entry: GoldEntry, seen: ViewObservation, *, readable: bool) -> str | None:
    """Why the view cannot be computed at the published versions; None if it can."""
    if seen.published is None:
        return "nothing is published yet"
    kinds = {input_change(one).kind for one in seen.inputs}
    lost = kinds & {ChangeKind.ADDED, ChangeKind.RECREATED, ChangeKind.REWOUND}
    if lost or not readable:
        return "the published versions of its inputs were removed"
    redefined = seen.published.fingerprint != entry.fingerprint
    if redefined and any(one.movement.reshaped for one in seen.inputs):
        # The definition may read a column that the published versions lack.
        return "its definition and the columns of its inputs changed"
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

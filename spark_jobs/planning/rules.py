"""Chooses the maintenance strategy for a change, or says why there is none.

If a strategy is chosen, applying the changes provably gives the result of a full refresh.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.graph.manifest import GoldEntry, MaintenanceStrategy
from spark_jobs.planning.changes import ChangeKind, InputChange
from spark_jobs.planning.decision import Reason, ReasonCode
from spark_jobs.planning.experience import Forecast

# If a larger share of rows changed, a full refresh is cheaper. Used only until the cost model has
# samples of the view.
LARGEST_SHARE = 0.3


@dataclass(frozen=True)
class Derived:
    """The strategy for these changes."""

    rule: str
    text: str
    rows: int | None = None


@dataclass(frozen=True)
class Refused:
    """Why no strategy applies."""

    reason: Reason


class Chooser(Protocol):
    """Decides whether a view is refreshed incrementally; a pure function."""

    def __call__(
        self, view: GoldEntry, changes: Sequence[InputChange], expected: Forecast
    ) -> Derived | Refused: ...


def choose_rule(
    view: GoldEntry, changes: Sequence[InputChange], expected: Forecast
) -> Derived | Refused:
    """The strategy of the view's SQL, unless the inputs or the size of the change rule it out.

    Args:
        view: the view's entry in the manifest.
        changes: changes of all inputs, including unchanged ones.
        expected: expected seconds of a full and an incremental refresh.
    """
    maintenance = view.maintenance
    if view.strategy is Strategy.FULL:
        return _refused(ReasonCode.STRATEGY_FULL, "the view declares strategy full")
    if maintenance is None or maintenance.rule is MaintenanceStrategy.FULL:
        why = (
            maintenance.detail
            if maintenance is not None
            else "the view has no maintenance strategy"
        )
        return _refused(ReasonCode.INPUT_CHANGED_NO_RULE, str(why))
    moved = [change for change in changes if change.kind is ChangeKind.CHANGED]
    for change in moved:
        if change.movement.reshaped:
            text = f"the columns of {change.table} changed"
            return _refused(ReasonCode.INPUT_RESHAPED, text)
        if not change.movement.fed:
            text = f"{change.table} has no change feed for all of these versions"
            return _refused(ReasonCode.CHANGE_FEED_MISSING, text)
    if view.strategy is Strategy.AUTO and (slower := _slower(moved, expected)) is not None:
        return slower
    text = maintenance.rule.words
    if expected.explores_incremental and view.strategy is Strategy.AUTO:
        text += ", to learn what so large a change takes"
    return Derived(maintenance.rule.value, text, changed_rows(moved))


def _slower(moved: Sequence[InputChange], expected: Forecast) -> Refused | None:
    """Why an incremental refresh is expected to be slower than a full one, if it is."""
    if expected.favours_full:
        text = f"a full refresh takes some {expected.full:.1f} s, following the changes "
        if expected.incremental is None:
            text += f"at least {expected.by_size:.1f} s, because it reads tables so often"
        else:
            text += f"{expected.following:.1f} s"
        return _refused(ReasonCode.FULL_IS_FASTER, text)
    if expected.explores_full:
        if expected.optimistic_full is None:
            text = (
                f"a full refresh was measured only in the first build, {expected.full:.1f} s with "
                f"cold caches; it is tried once, because following the changes takes "
                f"{expected.following:.1f} s"
            )
        else:
            text = (
                f"a full refresh was not tried yet and may take {expected.optimistic_full:.1f} s, "
                f"following the changes {expected.incremental:.1f} s"
            )
        return _refused(ReasonCode.FULL_IS_TRIED, text)
    share = largest_share(moved)
    known = expected.full is not None and expected.incremental is not None
    if not known and share is not None and share > LARGEST_SHARE:
        text = f"{share:.0%} of an input changed, incremental pays up to {LARGEST_SHARE:.0%}"
        return _refused(ReasonCode.CHANGE_TOO_LARGE, text)
    return None


def largest_share(changes: Sequence[InputChange]) -> float | None:
    """The largest share of changed rows among the inputs whose logs count rows."""
    shares = [
        one.movement.rows / one.movement.total
        for one in changes
        if one.movement.rows is not None and one.movement.total
    ]
    return max(shares, default=None)


def total_rows(changes: Sequence[InputChange]) -> int | None:
    """Rows of all inputs; None if a log has no counts."""
    return _sum([one.movement.total for one in changes])


def changed_rows(changes: Sequence[InputChange]) -> int | None:
    """Changed rows of the inputs; None if a log has no counts."""
    return _sum([one.movement.rows for one in changes if one.kind is ChangeKind.CHANGED])


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if len(known) == len(counts) else None


def _refused(code: ReasonCode, text: str) -> Refused:
    return Refused(Reason(code, text))

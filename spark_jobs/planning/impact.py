"""What a change of one table would make a refresh compute, view by view; the planner decides.

Values only; ``gold.impact`` fills them from what it observes. What no log tells before it is
computed is a limit from the view's SQL, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spark_jobs.graph.maintenance.reach import NO_ROWS, RowsMoved, reach
from spark_jobs.graph.manifest import GoldEntry, MaintenanceStrategy
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.breaker import guarded
from spark_jobs.planning.changes import ChangeKind
from spark_jobs.planning.decision import Full, Incremental, ReasonCode
from spark_jobs.planning.errors import VersionRangeError
from spark_jobs.planning.plan import Estimate, RefreshPlan, ViewObservation, plan_refresh
from spark_jobs.planning.rules import total_rows
from spark_jobs.sections import BreakerSettings

_RANGE = re.compile(r"(\d{1,18})\.\.(\d{1,18})")
# Decisions that inputs' changed rows alone bring about: without such rows the result stays.
_BY_ROWS = frozenset(
    {
        ReasonCode.INPUT_CHANGED_RULE,
        ReasonCode.INPUT_CHANGED_NO_RULE,
        ReasonCode.STRATEGY_FULL,
        ReasonCode.FULL_IS_FASTER,
        ReasonCode.FULL_IS_TRIED,
        ReasonCode.CHANGE_TOO_LARGE,
        ReasonCode.CHANGE_FEED_MISSING,
    }
)


@dataclass(frozen=True)
class VersionRange:
    """The versions of a table after ``after``, up to ``upto``."""

    after: int
    upto: int

    def __str__(self) -> str:
        return f"{self.after}..{self.upto}"


def version_range(text: str) -> VersionRange:
    """Read ``A..B``: the changes from version A to version B.

    Raises:
        VersionRangeError: it is none.

    >>> version_range("41..44")
    VersionRange(after=41, upto=44)
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise VersionRangeError(text, "is not a range of versions")
    found = VersionRange(int(match[1]), int(match[2]))
    if found.after >= found.upto:
        raise VersionRangeError(text, "holds no change: its end is not above its start")
    return found


@dataclass(frozen=True)
class Arrival:
    """Changed rows of an input, as far as the columns go that a view reads.

    Attributes:
        rows: None where nobody can tell.
        exact: whether they were counted; otherwise they are a limit.
    """

    rows: RowsMoved | None
    exact: bool

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {"rows": None if self.rows is None else self.rows.as_dict(), "exact": self.exact}


@dataclass(frozen=True, kw_only=True)
class ViewImpact:
    """What would become of one view.

    Attributes:
        plan: what the planner would decide.
        arrivals: of the inputs that change, by name.
        changes: at most so many of the view's rows are deleted and inserted; None: any.
        rows: of the published table; None where nothing is published, or nobody counted.
        reads_at_least: rows that a refresh reads in any case; None where logs do not say.
        reads_at_most: the same, all rows of all inputs where the strategy sets no limit.
        inputs_rows: all rows of all inputs.
        untouched: why no row of the view changes; None where some may.
        waits: whether a refresh is so large that a person has to let it pass first.
    """

    plan: RefreshPlan
    arrivals: Mapping[str, Arrival]
    changes: RowsMoved | None
    rows: int | None
    reads_at_least: int | None
    reads_at_most: int | None
    inputs_rows: int | None
    untouched: str | None = None
    waits: bool = False

    @property
    def changes_rows(self) -> bool:
        """Whether a refresh may publish changed rows, which views above it have to follow."""
        return not self.plan.skips and self.changes != NO_ROWS

    @property
    def share(self) -> float | None:
        """At most such a part of the published rows changes; None where nobody can tell."""
        if self.changes == NO_ROWS:
            return 0.0
        if not self.rows:
            return None
        return 1.0 if self.changes is None else min(1.0, self.changes.leave / self.rows)

    @property
    def share_read(self) -> float | None:
        """At most such a part of the inputs' rows is read; None where nobody can tell."""
        if self.reads_at_most is None or not self.inputs_rows:
            return None
        return min(1.0, self.reads_at_most / self.inputs_rows)

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            **self.plan.as_dict(),
            "untouched": self.untouched,
            "waits": self.waits,
            "arriving": {name: one.as_dict() for name, one in self.arrivals.items()},
            "rows": self.rows,
            "changes_at_most": None if self.changes is None else self.changes.as_dict(),
            "share_at_most": _rounded(self.share),
            "reads": {
                "at_least": self.reads_at_least,
                "at_most": self.reads_at_most,
                "of": self.inputs_rows,
                "share_at_most": _rounded(self.share_read),
            },
        }


@dataclass(frozen=True, kw_only=True)
class Impact:
    """What a change of a table would make refreshes compute.

    Attributes:
        versions: the range that was asked about; None: for each view, all that it does not hold.
        newest: the table's version now.
        views: all that depend on the table, each after those that it reads.
    """

    table: TableName
    versions: VersionRange | None
    newest: TableVersion
    views: tuple[ViewImpact, ...]

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
        asked = self.versions
        return {
            "table": str(self.table),
            "versions": None if asked is None else {"after": asked.after, "upto": asked.upto},
            "newest": self.newest.version,
            "views": [one.as_dict() for one in self.views],
        }


def view_impact(
    entry: GoldEntry,
    seen: ViewObservation,
    *,
    clock: datetime,
    arrivals: Mapping[str, Arrival],
    rows: int | None,
    usual: int | None = None,
    breaker: BreakerSettings | None = None,
    untouched: str | None = None,
) -> ViewImpact:
    """Ask the planner about a view, and say how far the change reaches.

    Args:
        entry: the view.
        seen: the view as it would be found, with only those inputs moved that the change moves.
        clock: what the clock shows to the query.
        arrivals: of the inputs that move.
        rows: of the published table.
        usual: rows that the view's refreshes usually read.
        breaker: which refreshes wait for a person; None: as without a setting.
        untouched: why nothing moved, where the caller knows better words than the planner.
    """
    plan = plan_refresh(entry, seen, tick="", clock=clock)
    total = total_rows(plan.changes)
    if plan.skips:
        return ViewImpact(
            plan=plan,
            arrivals=arrivals,
            changes=NO_ROWS,
            rows=rows,
            reads_at_least=0,
            reads_at_most=0,
            inputs_rows=total,
            untouched=untouched or plan.reason.text,
        )
    by_rows = plan.reason.code in _BY_ROWS and not entry.reads_clock
    moved = {name: one.rows for name, one in arrivals.items()}
    changes = reach(entry.query, moved) if by_rows else None
    if by_rows and all(one == NO_ROWS for one in moved.values()):
        changes = NO_ROWS
        follows = isinstance(plan.decision, Incremental)
        untouched = "reads none of the changed columns" if follows else None
    least = most = total
    if not isinstance(plan.decision, Full):
        least = _changed(plan, arrivals)
        most = least if _keeps_groups(plan) else total
    measured = replace(plan, estimate=Estimate(rows=total, bytes=0, changed=least))
    stopped = guarded(measured, usual=usual, limits=breaker or BreakerSettings())
    return ViewImpact(
        plan=plan,
        arrivals=arrivals,
        changes=changes,
        rows=rows,
        reads_at_least=least,
        reads_at_most=most,
        inputs_rows=total,
        untouched=untouched,
        waits=stopped.skips,
    )


def _changed(plan: RefreshPlan, arrivals: Mapping[str, Arrival]) -> int | None:
    """Rows of the change feeds that are read: by the logs, or else at most."""
    found = 0
    for change in plan.changes:
        if change.kind is not ChangeKind.CHANGED:
            continue
        arrived = arrivals.get(str(change.table))
        limit = arrived.rows.total if arrived is not None and arrived.rows is not None else None
        rows = change.movement.rows if change.movement.rows is not None else limit
        if rows is None:
            return None
        found += rows
    return found


def _keeps_groups(plan: RefreshPlan) -> bool:
    """Whether the changed rows are all that a refresh reads of its inputs."""
    decision = plan.decision
    return (
        isinstance(decision, Incremental) and decision.rule == MaintenanceStrategy.AGGREGATE_STATE
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)

"""Estimates what a change of one table makes refreshes compute, view by view.

Plain values, filled by ``gold.explain.impact``; the planner decides. Counts that no log has are
upper limits derived from the view's SQL, and marked as such.
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
# Reasons that depend only on changed input rows: without such rows the result stays.
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
    """The versions of a table in (after, upto]."""

    after: int
    upto: int

    def __str__(self) -> str:
        return f"{self.after}..{self.upto}"


def version_range(text: str) -> VersionRange:
    """Parse ``A..B``: the changes from version A to version B.

    >>> version_range("41..44")
    VersionRange(after=41, upto=44)

    Raises:
        VersionRangeError: the text is not a version range.
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
    """Changed rows of an input, in the columns that a view reads.

    Attributes:
        rows: None if unknown.
        exact: whether they were counted; otherwise they are an upper limit.
    """

    rows: RowsMoved | None
    exact: bool

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: ``rows`` as from ``RowsMoved.as_dict`` or None, and ``exact``."""
        return {"rows": None if self.rows is None else self.rows.as_dict(), "exact": self.exact}


@dataclass(frozen=True, kw_only=True)
class ViewImpact:
    """The effect on one view.

    Attributes:
        plan: the plan of its refresh.
        arrivals: changed rows of its inputs, by name.
        changes: upper limit of its deleted and inserted rows; None: unlimited.
        rows: rows of the published table; None if unpublished or not counted.
        reads_at_least: rows that a refresh reads at least; None if the logs have no counts.
        reads_at_most: rows that it reads at most; all input rows if the strategy sets no limit.
        inputs_rows: all rows of all inputs.
        untouched: why no row of the view changes; None if some may.
        waits: whether the refresh is so large that a person must approve it first.
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
        """Whether the refresh may change rows, so that downstream views follow."""
        return not self.plan.skips and self.changes != NO_ROWS

    @property
    def share(self) -> float | None:
        """Upper limit of the share of published rows that change; None if unknown."""
        if self.changes == NO_ROWS:
            return 0.0
        if not self.rows:
            return None
        return 1.0 if self.changes is None else min(1.0, self.changes.leave / self.rows)

    @property
    def share_read(self) -> float | None:
        """Upper limit of the share of input rows that are read; None if unknown."""
        if self.reads_at_most is None or not self.inputs_rows:
            return None
        return min(1.0, self.reads_at_most / self.inputs_rows)

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object.

        Returns:
            the keys of ``RefreshPlan.as_dict``; and ``untouched``, ``waits``, ``arriving`` (the
                changed rows by input), ``rows``, ``changes_at_most`` (``leave`` and ``enter``),
                ``share_at_most`` (of the view's rows), and ``reads``: the numbers of rows
                ``at_least``, ``at_most`` and ``of`` (all rows), and ``share_at_most``. A number
                that is unknown, or a change without a limit, is None.
        """
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
    """The effect of a change of a table on all views.

    Attributes:
        versions: the requested range; None: for each view, all that it has not published.
        newest: the table's newest version.
        views: all dependent views, each after the views that it reads.
    """

    table: TableName
    versions: VersionRange | None
    newest: TableVersion
    views: tuple[ViewImpact, ...]

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object: the attributes, with versions as numbers."""
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
    """Plan a view's refresh after the change, and estimate its extent.

    Args:
        entry: the view.
        seen: the view's observation after the change; other inputs are unchanged.
        clock: the value of CURRENT_TIMESTAMP.
        arrivals: changed rows of the inputs that change.
        rows: rows of the published table.
        usual: rows that the view's refreshes usually read.
        breaker: limits of the circuit breaker; None: the defaults.
        untouched: why nothing changed, if the caller knows it better than the planner.
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
    """Changed input rows that are read: from the logs, or else an upper limit."""
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
    """Whether the refresh reads only the changed rows of its inputs."""
    decision = plan.decision
    return (
        isinstance(decision, Incremental) and decision.rule == MaintenanceStrategy.AGGREGATE_STATE
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)

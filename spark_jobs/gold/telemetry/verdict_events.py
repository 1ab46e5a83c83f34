"""Emits an asset event for each verdict on a gold view that differs from the one before.

The ledger is the outbox: a cursor for each view records up to when its verdicts were handled.
Events of a view are emitted in the order in which its refreshes were planned, at least once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.telemetry.event_sender import EventSender
from spark_jobs.quality.verdict import Outcome, Verdict
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.attempts import RefreshAttempt

# The cursor that holds the time before which verdicts get no event. No view has this name.
CURSOR = ".quality"
# A cursor stays this far behind: clocks differ, and a long transaction becomes visible late.
OVERLAP = timedelta(minutes=5)
# Pause between two questions whether a DAG names the asset of a view by now.
RETRY = timedelta(minutes=1)


@dataclass
class VerdictOutbox:
    """Emits the verdicts of the ledger that have no event yet."""

    sender: EventSender
    # Handled attempts that are newer than the cursor of their view.
    _done: set[str] = field(default_factory=set)
    # When to look again at a view whose events nobody could receive.
    _retry_at: dict[str, datetime] = field(default_factory=dict)

    def deliver(
        self, context: GoldContext, known: Mapping[str, AssetCursor], *, now: datetime
    ) -> int:
        """Emit the events of new verdicts; returns their number.

        Args:
            context: the project.
            known: all cursors of asset events, by name.
            now: the current time.

        Raises:
            AirflowAwayError: Airflow does not answer; the events wait.
        """
        if CURSOR not in known:
            # On the first run existing verdicts get no event.
            context.store.set_asset_cursor(AssetCursor(CURSOR, "", -1, now))
            return 0
        cursors = dict(self._ready(context, known, now))
        if not cursors:
            return 0
        after = min(cursor.at for cursor in cursors.values())
        # A later change of an old attempt must not move it behind newer ones.
        found = sorted(
            context.store.judged(list(cursors), after=after),
            key=lambda one: (one.started_at, one.attempt_id),
        )
        self._done &= {one.attempt_id for one in found}
        emitted = 0
        for view, cursor in cursors.items():
            new = [
                one
                for one in found
                if one.view == view
                and one.updated_at > cursor.at
                and one.attempt_id not in self._done
            ]
            emitted += self._deliver(context, cursor, new, now)
        return emitted

    def _ready(
        self, context: GoldContext, known: Mapping[str, AssetCursor], now: datetime
    ) -> Iterator[tuple[str, AssetCursor]]:
        """Views with their cursors; without views whose events still have no recipient.

        Verdicts of such a view pile up, so they are not read in each round.
        """
        for view in sorted(context.manifest.gold):
            name = verdict_cursor(view)
            cursor = known.get(name) or replace(known[CURSOR], view=name)
            if now < self._retry_at.get(view, now):
                continue
            self._retry_at.pop(view, None)
            if cursor.error is not None and self._obstacle(view, now) is not None:
                continue
            yield view, cursor

    def _obstacle(self, view: str, now: datetime) -> str | None:
        found = self.sender.obstacle(quality_asset_name(view))
        if found is not None:
            self._retry_at[view] = now + RETRY
        return found

    def _deliver(
        self,
        context: GoldContext,
        cursor: AssetCursor,
        new: Sequence[RefreshAttempt],
        now: datetime,
    ) -> int:
        """Emit the events of one view up to the first that has to wait."""
        emitted = 0
        for number, attempt in enumerate(new):
            if _differs(context, attempt):
                try:
                    problem = self._obstacle(attempt.view, now)
                    if problem is None:
                        emitted += self._emit(attempt)
                except LakehouseError as error:
                    self._wait(context, cursor, new[number:], now=now, why=error.primary)
                    raise
                if problem is not None:
                    self._wait(context, cursor, new[number:], now=now, why=problem)
                    return emitted
            self._done.add(attempt.attempt_id)
        if cursor.error is not None or now - cursor.at > 2 * OVERLAP:
            at = max(cursor.at, now - OVERLAP)
            context.store.set_asset_cursor(AssetCursor(cursor.view, "", -1, at))
        return emitted

    def _emit(self, attempt: RefreshAttempt) -> bool:
        """Emit the event of a verdict; returns False if Airflow has it."""
        name = quality_asset_name(attempt.view)
        if self.sender.has(name, attempt.attempt_id):
            return False
        self.sender.emit(name, verdict_event(attempt))
        return True

    def _wait(
        self,
        context: GoldContext,
        cursor: AssetCursor,
        left: Sequence[RefreshAttempt],
        *,
        now: datetime,
        why: str,
    ) -> None:
        """Record why the events of some attempts wait, and move the cursor to just before them."""
        since = min(one.updated_at for one in left)
        if (cursor.error, cursor.waits_since) == (why, since):
            return
        at = max(cursor.at, min(since - timedelta(microseconds=1), now - OVERLAP))
        moved = AssetCursor(cursor.view, "", -1, at, error=why, waits_since=since)
        context.store.set_asset_cursor(moved)


def verdict_cursor(view: str) -> str:
    """The name of the cursor of a view's verdicts.

    >>> verdict_cursor("daily_order_summary")
    '.quality/daily_order_summary'
    """
    return f"{CURSOR}/{view}"


def quality_asset_name(view: str) -> str:
    """The name of the asset of a view's quality.

    >>> quality_asset_name("daily_order_summary")
    'gold.daily_order_summary.quality'
    """
    return f"{gold_table(view)}.quality"


def verdict_event(attempt: RefreshAttempt) -> dict[str, Any]:
    """The content of a verdict's event, without any value of a row.

    Returns:
        ``outcome``, ``rules`` (the number that were checked), ``failed`` (``rule``, ``severity``
        and number of failing ``rows`` of each), ``rows`` that were audited, ``inputs`` (versions by
        table name) and ``attempt``.
    """
    verdict = Verdict.from_dict(attempt.verdict or {})
    return {
        "outcome": str(verdict.outcome),
        "rules": verdict.expectations,
        "failed": [
            {"rule": one.name, "severity": str(one.severity), "rows": one.unexpected_count}
            for one in verdict.failed
        ],
        "rows": verdict.rows,
        "inputs": {name: one.get("version") for name, one in (attempt.vector or {}).items()},
        "attempt": attempt.attempt_id,
    }


def _differs(context: GoldContext, attempt: RefreshAttempt) -> bool:
    """Whether the previous verdict was different, or is no longer in the ledger."""
    before = context.store.judged_before(attempt)
    return before is None or _key(before) != _key(attempt)


def _key(attempt: RefreshAttempt) -> tuple[Outcome, tuple[str, ...]]:
    """What two verdicts have in common if the later one gets no event."""
    verdict = Verdict.from_dict(attempt.verdict or {})
    return verdict.outcome, tuple(sorted(one.name for one in verdict.failed))

"""What other teams' DAGs hear of a view's quality: each verdict that is not the one before.

The ledger is the outbox. How far it was looked at is kept as a time, with room for clocks that
differ and for transactions that take long; what was told already is remembered, and Airflow knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from spark_jobs.gold.context import GoldContext, gold_table
from spark_jobs.quality.verdict import Outcome, Verdict
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.attempts import RefreshAttempt

# No view has this name.
CURSOR = ".quality"
OVERLAP = timedelta(minutes=5)


@dataclass
class VerdictOutbox:
    """The verdicts that are to be told."""

    _told: set[str] = field(default_factory=set)

    def waiting(
        self, context: GoldContext, cursor: AssetCursor | None, *, now: datetime
    ) -> Iterator[RefreshAttempt]:
        """Attempts with a verdict that is to be told, the oldest verdict first.

        Args:
            context: the project.
            cursor: the one of ``CURSOR``.
            now: where all of them are told, the cursor moves towards it.
        """
        if cursor is None:
            # What was judged before verdicts were told is old.
            self._move(context, now)
            return
        found = context.store.judged(sorted(context.manifest.gold), after=cursor.at)
        self._told &= {one.attempt_id for one in found}
        for one in found:
            if one.attempt_id in self._told:
                continue
            if _differs(context, one):
                yield one
            self._told.add(one.attempt_id)
        if now - cursor.at > 2 * OVERLAP:
            self._move(context, now - OVERLAP)

    def _move(self, context: GoldContext, at: datetime) -> None:
        context.store.set_asset_cursor(AssetCursor(CURSOR, "", -1, at))


def quality_asset_name(view: str) -> str:
    """The name of the asset of a view's quality.

    >>> quality_asset_name("daily_order_summary")
    'gold.daily_order_summary.quality'
    """
    return f"{gold_table(view)}.quality"


def verdict_event(attempt: RefreshAttempt) -> dict[str, Any]:
    """What the event of a verdict says; it holds no value of any row.

    Returns:
        ``outcome``, ``rules``: how many were checked, ``failed``: of each that failed the ``rule``,
        its ``severity`` and how many ``rows`` break it, ``rows`` that were judged, ``inputs``: the
        version of each by name, and ``attempt``.
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
    """Whether the verdict before was another one, or is not known any more."""
    before = context.store.judged_before(attempt)
    return before is None or _sign(before) != _sign(attempt)


def _sign(attempt: RefreshAttempt) -> tuple[Outcome, tuple[str, ...]]:
    verdict = Verdict.from_dict(attempt.verdict or {})
    return verdict.outcome, tuple(sorted(one.name for one in verdict.failed))

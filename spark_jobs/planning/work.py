"""The work item of a refresh: an attempt decoded from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from spark_jobs.planning.decision import (
    Decision,
    Full,
    Incremental,
    Promotion,
    Range,
    Reason,
    ReasonCode,
    Rollback,
    Skip,
    decision_of,
)
from spark_jobs.planning.vector import VersionVector
from spark_jobs.state.attempts import RefreshAttempt


@dataclass(frozen=True, kw_only=True)
class WorkItem:
    """One attempt to refresh a view, with all that the plan fixed.

    Attributes:
        decision: what to do, and why.
        vector: version of each input to read.
        clock: the value of ``current_timestamp``.
        sequence: version of its Delta transaction within the epoch.
        changed: estimated number of changed input rows; None if unknown.
        verdict: the gate's verdict as from ``Verdict.as_dict``; empty before the audit.
    """

    attempt_id: str
    view: str
    tick: str
    epoch: int
    sequence: int
    fingerprint: str
    decision: Decision
    vector: VersionVector
    clock: datetime
    changed: int | None
    verdict: Mapping[str, Any]

    @property
    def place(self) -> tuple[int, int]:
        """Epoch and sequence, as those of its attempt."""
        return self.epoch, self.sequence


def work_item(attempt: RefreshAttempt) -> WorkItem:
    """Decode a row of the ledger.

    Raises:
        ValueError: this release does not know the decision.
    """
    decision = decision_in(attempt)
    return WorkItem(
        attempt_id=attempt.attempt_id,
        view=attempt.view,
        tick=attempt.tick,
        epoch=attempt.epoch,
        sequence=attempt.sequence or 0,
        fingerprint=attempt.fingerprint or "",
        decision=decision,
        vector=vector_in(attempt),
        clock=_clock(decision) or attempt.started_at,
        changed=(attempt.estimate or {}).get("changed"),
        verdict=attempt.verdict or {},
    )


def decision_in(attempt: RefreshAttempt) -> Decision:
    """The decision in a row of the ledger.

    Raises:
        ValueError: this release does not know the decision.
    """
    reason = Reason(ReasonCode(attempt.reason_code or ""), attempt.reason or "")
    return decision_of(
        attempt.decision or "", reason=reason, rule=attempt.rule, scope=attempt.scope
    )


def vector_in(attempt: RefreshAttempt) -> VersionVector:
    """The version vector in a row of the ledger."""
    return VersionVector.from_dict(attempt.vector or {})


def covers_view(decision: Decision) -> bool:
    """Whether a decision brings all rows and columns of a view to newer input versions.

    >>> covers_view(Rollback(Reason(ReasonCode.ROLLED_BACK, "rollback"), version=3))
    False
    """
    match decision:
        case Incremental() | Full(columns=None):
            return True
        case Skip() | Full() | Range() | Rollback() | Promotion():
            return False


def _clock(decision: Decision) -> datetime | None:
    """When the existing rows that a decision publishes were computed; None: they are new.

    Not the start of the attempt, which comes after that of all earlier attempts of the view.
    """
    match decision:
        case Rollback(clock=clock) | Promotion(clock=clock):
            return clock
        case Skip() | Full() | Incremental() | Range():
            return None

"""What a refresh is to do, as planning decided it: read from the ledger once, then a value."""

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
    """One attempt to refresh a view, with everything that the plan fixed.

    Attributes:
        decision: what to do, and why.
        vector: the version of each input to read.
        clock: the instant that ``current_timestamp`` stands for.
        sequence: the number of its Delta transaction within the epoch.
        changed: how many rows of the inputs changed, by the plan's estimate; None: unknown.
        verdict: what the quality gate said, as ``Verdict.as_dict`` writes it; empty before.
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
    def stages_change(self) -> bool:
        """Whether the attempt stages a change of the table, and not its whole content."""
        return isinstance(self.decision, Incremental | Range)


def work_item(attempt: RefreshAttempt) -> WorkItem:
    """Decode a row of the ledger.

    Raises:
        ValueError: the row holds no decision of this release.
    """
    return WorkItem(
        attempt_id=attempt.attempt_id,
        view=attempt.view,
        tick=attempt.tick,
        epoch=attempt.epoch,
        sequence=attempt.sequence or 0,
        fingerprint=attempt.fingerprint or "",
        decision=decision_in(attempt),
        vector=vector_in(attempt),
        clock=attempt.started_at,
        changed=(attempt.estimate or {}).get("changed"),
        verdict=attempt.verdict or {},
    )


def decision_in(attempt: RefreshAttempt) -> Decision:
    """The decision that a row of the ledger holds.

    Raises:
        ValueError: it is none of this release.
    """
    reason = Reason(ReasonCode(attempt.reason_code or ""), attempt.reason or "")
    return decision_of(
        attempt.decision or "", reason=reason, rule=attempt.rule, scope=attempt.scope
    )


def vector_in(attempt: RefreshAttempt) -> VersionVector:
    """The versions of the inputs that a row of the ledger holds."""
    return VersionVector.from_dict(attempt.vector or {})


def covers_view(decision: Decision) -> bool:
    """Whether a refresh brings all rows and columns of a view up to newer inputs.

    >>> covers_view(Rollback(Reason(ReasonCode.ROLLED_BACK, "rollback"), version=3))
    False
    """
    match decision:
        case Incremental() | Full(columns=None):
            return True
        case Skip() | Full() | Range() | Rollback() | Promotion():
            return False

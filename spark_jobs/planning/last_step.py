"""Decides the last step of a refresh."""

from __future__ import annotations

from typing import assert_never

from spark_jobs.graph.last_step import DeleteInsert, LastStep, MergeByKey, Overwrite, RowStep
from spark_jobs.graph.manifest import Maintenance
from spark_jobs.planning.decision import (
    Decision,
    Full,
    Incremental,
    Promotion,
    Range,
    Rollback,
    Skip,
)


def last_step(decision: Decision, maintenance: Maintenance | None) -> LastStep:
    """The last step of a refresh.

    >>> from spark_jobs.planning.decision import Reason, ReasonCode
    >>> last_step(Full(Reason(ReasonCode.FORCED, "forced")), None)
    Overwrite()

    Args:
        decision: of the refresh.
        maintenance: of the view.

    Raises:
        ValueError: the decision is to skip, so nothing is published.
    """
    match decision:
        case Incremental():
            return incremental_step(maintenance)
        case Range():
            # The published rows of a range may be wrong in any way, even have a key twice.
            return DeleteInsert()
        case Full() | Rollback() | Promotion():
            return Overwrite()
        case Skip():
            raise ValueError("a refresh that is skipped has no last step")
        case _:
            assert_never(decision)


def incremental_step(maintenance: Maintenance | None) -> RowStep:
    """The last step of an incremental refresh: by the view's key, if one is known."""
    key = () if maintenance is None else maintenance.key
    return MergeByKey(key) if key else DeleteInsert()

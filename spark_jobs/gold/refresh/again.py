"""Stages an attempt, or plans it again if the view was published or changed since its plan."""

from __future__ import annotations

from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.state.attempts import AttemptStatus


def stage_on_newest(refresher: Refresher, attempt_id: str) -> str | None:
    """Stage on top of the newest publication, by the newest definition.

    Returns:
        the attempt that was staged, perhaps a new one; None: there is nothing left to refresh.

    Raises:
        LakehouseError: any error of ``Refresher.stage``.
    """
    try:
        refresher.stage(attempt_id)
    except BaseMovedError:
        attempt = refresher.context.store.update_attempt(
            attempt_id, status=AttemptStatus.SUPERSEDED, error=None
        )
    else:
        return attempt_id
    plan = refresher.plan(
        attempt.view,
        tick=attempt.tick,
        force=attempt.reason_code == ReasonCode.FORCED,
        let_pass=f"attempt {attempt_id} was let pass",
        asked_by=attempt.asked_by,
    )
    if plan.skips:
        return None
    refresher.stage(plan.attempt_id)
    return plan.attempt_id

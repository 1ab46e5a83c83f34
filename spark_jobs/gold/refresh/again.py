"""Steps that plan a refresh again if the view was published or changed since its plan."""

from __future__ import annotations

from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.refresh.publishing import Published
from spark_jobs.gold.refresh.steps import ROUNDS, Refresher
from spark_jobs.planning.decision import ReasonCode


def stage_on_newest(refresher: Refresher, attempt_id: str) -> str | None:
    """Stage on top of the newest publication, by the newest definition.

    Returns:
        the attempt that was staged, perhaps a new one; None: there is nothing left to refresh.

    Raises:
        BaseMovedError: other refreshes published first in every round.
        LakehouseError: any other error of ``Refresher.stage``.
    """
    for _ in range(ROUNDS - 1):
        try:
            refresher.stage(attempt_id)
        except BaseMovedError:
            attempt = refresher.supersede(attempt_id)
        else:
            return attempt_id
        plan = refresher.plan(
            attempt.view,
            tick=attempt.tick,
            force=attempt.reason_code == ReasonCode.FORCED,
            let_pass=_passed(attempt_id),
            asked_by=attempt.asked_by,
        )
        if plan.skips:
            return None
        attempt_id = plan.attempt_id
    refresher.stage(attempt_id)
    return attempt_id


def publish_on_newest(refresher: Refresher, attempt_id: str) -> Published:
    """Publish; if another publication came first, refresh again on top of it.

    Raises:
        GateBlockedError: a critical expectation failed on the newer content.
        LakehouseError: any other error of the steps.
    """
    try:
        return refresher.publish(attempt_id)
    except BaseMovedError:
        attempt = refresher.supersede(attempt_id)
    outcome = refresher.run(
        attempt.view, tick=attempt.tick, let_pass=_passed(attempt_id), asked_by=attempt.asked_by
    )
    return Published(attempt.view, outcome.plan.attempt_id, outcome.version, outcome.changed)


def _passed(attempt_id: str) -> str:
    return f"attempt {attempt_id} was let pass"

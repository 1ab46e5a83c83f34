"""The tasks of a rollback and of a release, each of one view.

The fields of a form are checked like those of a replay; see ``replay_steps``.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException

from spark_jobs.orchestration.approval import approver
from spark_jobs.orchestration.assets import announce
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.replay_steps import replay_id, show
from spark_jobs.orchestration.steps import refresher, who
from spark_jobs.planning.markdown import as_markdown
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.quality.verdict import Verdict

log = logging.getLogger("airflow.task.tidemark")


def validate_release(context: Context) -> dict[str, Any]:
    """Check every field of the form.

    Returns:
        ``view``, ``reason``, ``ticket`` and ``attempt``, as plain values.

    Raises:
        ReplayRequestError: a field has a value that is not allowed; it names the field.
    """
    from spark_jobs.planning.request import attempt_name, one_view, why

    params = context["params"]
    because = why(params.get("reason"), params.get("ticket"))
    return {
        "view": one_view(compiled_manifest(load_settings()), params.get("view")),
        "reason": because.reason,
        "ticket": because.ticket,
        "attempt": attempt_name(params.get("attempt")),
    }


def validate_rollback(context: Context) -> dict[str, Any]:
    """Check every field of the form.

    Returns:
        the keys of ``validate_release``, ``version`` and ``replay``, as plain values.

    Raises:
        ReplayRequestError: a field has a value that is not allowed; it names the field.
    """
    from spark_jobs.planning.request import replay_name, version_number

    params = context["params"]
    return {
        **validate_release(context),
        "version": version_number(params.get("version")),
        "replay": replay_name(params.get("replay")),
    }


def plan_rollback(asked: dict[str, Any], context: Context) -> int:
    """Find the version to roll back to, and show it; returns the version.

    Args:
        asked: from ``validate_rollback``.
        context: the task's context.

    Raises:
        NotPublishedError: nothing is published.
        RollbackRefusedError: the version is not a publication, or its files were deleted.
    """
    from spark_jobs.gold.recover.rollback import Rollbacker

    with refresher() as steps:
        target = Rollbacker(steps).target(
            asked["view"], to=asked["version"], replay=asked["replay"]
        )
    show(
        context,
        f"Publish the content of version {target.version} of gold.{asked['view']} again "
        f"({target.at:%Y-%m-%d %H:%M:%S} UTC, from {target.watermark.vector}), and pin it "
        f"there.\n\nReason: {as_markdown(asked['reason'])}",
    )
    return target.version


def rollback(asked: dict[str, Any], version: int, context: Context) -> None:
    """Publish the earlier content and pin the view.

    Args:
        asked: from ``validate_rollback``.
        version: from ``plan_rollback``.
        context: the task's context.
    """
    from spark_jobs.gold.recover.rollback import Rollbacker
    from spark_jobs.planning.request import Why

    with refresher() as steps:
        rollbacker = Rollbacker(steps)
        record = rollbacker.begin(
            asked["view"],
            rollbacker.target(asked["view"], to=version),
            replay_id=replay_id(context, kind="rollback"),
            who=who(context),
            why=Why(asked["reason"], asked["ticket"]),
            approved_by=approver(context),
        )
        row = rollbacker.run(record.replay_id)
        announce(context, steps.context, [row.attempt_id])
    log.info("published %s version=%s; the view is pinned", row.view, row.published_version)


def plan_release(asked: dict[str, Any], context: Context) -> dict[str, str]:
    """Find what blocks the view, and show it.

    Args:
        asked: from ``validate_release``.
        context: the task's context.

    Returns:
        what the approval is about: ``rollback``, the one whose pin is removed, or ``attempt``, the
            blocked one that is published.

    Raises:
        NothingToReleaseError: the newest refresh was published, or there was none.
        ReleaseRefusedError: the result was not audited, or can no longer be published.
    """
    from spark_jobs.gold.recover.release import blocked_attempt, newer_input
    from spark_jobs.gold.recover.rollback import Rollbacker
    from spark_jobs.planning.work import vector_in
    from spark_jobs.quality.verdict import Verdict

    reason = f"Reason: {as_markdown(asked['reason'])}"
    with refresher() as steps:
        pinned = Rollbacker(steps).pinned(asked["view"])
        if pinned is not None:
            show(
                context,
                f"Unpin gold.{pinned.view}. {as_markdown(pinned.who)} rolled it back to "
                f"version {pinned.version} at {pinned.since:%Y-%m-%d %H:%M:%S} UTC "
                f"({as_markdown(pinned.reason)}); the next refresh picks up the changes since."
                f"\n\n{reason}",
            )
            return {"rollback": pinned.replay_id}
        attempt = blocked_attempt(steps, asked["view"], attempt_id=asked["attempt"])
        newer = newer_input(steps, attempt)
    verdict = Verdict.from_dict(attempt.verdict or {})
    failed = failed_rules(verdict)
    came = f"\n\nNewer input is available, and comes with the next refresh: {newer}."
    show(
        context,
        f"Publish attempt {attempt.attempt_id} of gold.{attempt.view} once, computed at "
        f"{attempt.started_at:%Y-%m-%d %H:%M:%S} UTC from {vector_in(attempt)}, "
        f"although this failed:\n\n{failed}{came if newer.versions else ''}\n\n{reason}",
    )
    return {"attempt": attempt.attempt_id}


def failed_rules(verdict: Verdict) -> str:
    """The rules that failed as a Markdown list; their messages have keys of rows."""
    return "\n".join(f"- {one.severity}: {as_markdown(one.message)}" for one in verdict.failed)


def release(asked: dict[str, Any], agreed: dict[str, str], context: Context) -> None:
    """Release exactly what was approved.

    Args:
        asked: from ``validate_release``.
        agreed: from ``plan_release``.
        context: the task's context.

    Raises:
        AirflowFailException: another rollback pins the view now.
        NothingToReleaseError: a newer refresh was published.
    """
    from spark_jobs.gold.recover.release import release_blocked
    from spark_jobs.gold.recover.rollback import Rollbacker
    from spark_jobs.planning.request import Why

    because, view = Why(asked["reason"], asked["ticket"]), asked["view"]
    agrees = approver(context)
    with refresher() as steps:
        if "rollback" in agreed:
            rollbacker = Rollbacker(steps)
            pinned = rollbacker.pinned(view)
            if pinned is None or pinned.replay_id != agreed["rollback"]:
                raise AirflowFailException(
                    f"{agreed['rollback']} no longer pins gold.{view}; fill in the form again"
                )
            rollbacker.release(view, who=who(context), why=because, approved_by=agrees)
            log.info("%s is unpinned; the next refresh picks up the changes since", view)
            return
        published = release_blocked(
            steps,
            view,
            who=who(context),
            why=because,
            attempt_id=agreed["attempt"],
            approved_by=agrees,
        )
        announce(context, steps.context, [published.attempt_id])
    log.info("published %s version=%s past the gate", published.view, published.version)

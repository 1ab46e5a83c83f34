"""What each task of a rollback and of a release does; both are about one view.

The fields of a form are checked as those of a replay are; see ``replay_steps``.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import Context

from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.replay_steps import as_markdown, replay_id, show
from spark_jobs.orchestration.steps import refresher, who
from spark_jobs.settings import load_settings

log = logging.getLogger("airflow.task.tidemark")


def validate_release(context: Context) -> dict[str, Any]:
    """Check every field of the form; returns them as plain values.

    Raises:
        ReplayRequestError: a field holds what it may not; it names the field.
    """
    from spark_jobs.planning.request import one_view, why

    params = context["params"]
    because = why(params.get("reason"), params.get("ticket"))
    return {
        "view": one_view(compiled_manifest(load_settings()), params.get("view")),
        "reason": because.reason,
        "ticket": because.ticket,
    }


def validate_rollback(context: Context) -> dict[str, Any]:
    """Check every field of the form; returns them as plain values.

    Raises:
        ReplayRequestError: a field holds what it may not; it names the field.
    """
    from spark_jobs.planning.request import replay_name, version_number

    params = context["params"]
    return {
        **validate_release(context),
        "version": version_number(params.get("version")),
        "replay": replay_name(params.get("replay")),
    }


def plan_rollback(asked: dict[str, Any], context: Context) -> int:
    """Find the content to go back to, and show it; returns its version."""
    from spark_jobs.gold.rollback import Rollbacker

    with refresher() as steps:
        target = Rollbacker(steps).target(
            asked["view"], to=asked["version"], replay=asked["replay"]
        )
    show(
        context,
        f"Publish the content of version {target.version} of gold.{asked['view']} again "
        f"({target.at:%Y-%m-%d %H:%M:%S} UTC, from {target.watermark.vector}), and hold it "
        f"there.\n\nReason: {as_markdown(asked['reason'])}",
    )
    return target.version


def rollback(asked: dict[str, Any], version: int, context: Context) -> None:
    """Publish the earlier content and hold the view."""
    from spark_jobs.gold.rollback import Rollbacker
    from spark_jobs.planning.request import Why

    with refresher() as steps:
        rollbacker = Rollbacker(steps)
        record = rollbacker.begin(
            asked["view"],
            rollbacker.target(asked["view"], to=version),
            replay_id=replay_id(context, kind="rollback"),
            who=who(context),
            why=Why(asked["reason"], asked["ticket"]),
        )
        row = rollbacker.run(record.replay_id)
    log.info("published %s version=%s; the view is held", row.view, row.published_version)


def plan_release(asked: dict[str, Any], context: Context) -> str:
    """Find the result that the gate holds, and show what failed; returns its attempt."""
    from spark_jobs.gold.release import held_attempt
    from spark_jobs.planning.work import vector_in
    from spark_jobs.quality.verdict import Verdict

    with refresher() as steps:
        attempt = held_attempt(steps, asked["view"])
    verdict = Verdict.from_dict(attempt.verdict or {})
    failed = "\n".join(f"- {one.severity}: {one.message}" for one in verdict.failed)
    show(
        context,
        f"Publish gold.{attempt.view} once from {vector_in(attempt)}, "
        f"although this failed:\n\n{failed}\n\nReason: {as_markdown(asked['reason'])}",
    )
    return attempt.attempt_id


def release(asked: dict[str, Any], attempt_id: str, context: Context) -> None:
    """Publish the result that was shown."""
    from spark_jobs.gold.release import release_held
    from spark_jobs.planning.request import Why

    with refresher() as steps:
        published = release_held(
            steps,
            asked["view"],
            who=who(context),
            why=Why(asked["reason"], asked["ticket"]),
            attempt_id=attempt_id,
        )
    log.info("published %s version=%s past the gate", published.view, published.version)

"""The tasks of a replay; each runs a step and reports its outcome to Airflow.

The fields of a form are checked by an allow-list before anything else, and passed on as plain
values: none becomes a part of a template, a query, a path or a command.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from spark_jobs.orchestration.alerts import AlertSentError
from spark_jobs.orchestration.approval import APPROVAL_TASK, answer, approver, person
from spark_jobs.orchestration.assets import announce
from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.steps import refresher, who
from spark_jobs.planning.markdown import as_markdown
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from spark_jobs.gold.recover.replay import Replayer
    from spark_jobs.gold.refresh.steps import Refresher

log = logging.getLogger("airflow.task.tidemark")

# The lengths of the columns in the control database.
_LONGEST_ID = 200


@contextmanager
def form_read() -> Iterator[None]:
    """Read a form; a request that is refused is not a failed task.

    Raises:
        AirflowSkipException: the form was refused; the message says why, and what to do.
    """
    from spark_jobs.gold.base import errors
    from spark_jobs.planning.errors import ReplayRequestError
    from spark_jobs.state.errors import ReplayNotFoundError

    refusals = (
        ReplayRequestError,
        ReplayNotFoundError,
        errors.NothingToReleaseError,
        errors.NotPublishedError,
        errors.ReleaseRefusedError,
        errors.RollbackRefusedError,
    )
    try:
        yield
    except refusals as refused:
        text = f"the form is refused: {refused.primary} [{refused.condition}]. {refused.hint or ''}"
        raise AirflowSkipException(text.strip()) from None


def validate_replay(context: Context) -> dict[str, Any]:
    """Check every field of the form.

    Returns:
        ``request`` as from ``ReplayRequest.as_dict``, ``reason``, ``ticket`` and ``dry_run``.

    Raises:
        ReplayRequestError: a field has a value that is not allowed; it names the field.
    """
    from spark_jobs.gold.base.publications import changed_views
    from spark_jobs.planning.request import replay_request, why

    params, settings = context["params"], load_settings()
    because = why(params.get("reason"), params.get("ticket"))
    manifest = compiled_manifest(settings)
    request = replay_request(
        manifest,
        params.get("views"),
        changed=partial(changed_views, manifest, settings.lake),
        branch=params.get("branch"),
        start=params.get("from"),
        end=params.get("to"),
        chunk=params.get("chunk"),
        only_stale=params.get("only_stale"),
    )
    dry_run = params.get("dry_run")
    return {
        "request": request.as_dict(),
        "reason": because.reason,
        "ticket": because.ticket,
        # Anything except an explicit no is a dry run.
        "dry_run": dry_run is not False,
    }


def plan_replay(asked: dict[str, Any], context: Context) -> dict[str, Any]:
    """Show the plan of the replay: as a table in the log, and as Markdown for the approval.

    Args:
        asked: from ``validate_replay``.
        context: the task's context, to which the plan is added.

    Returns:
        ``views`` (names in order), ``dry_run``, and ``approval``: whether a person must approve it.
    """
    with replayer() as replays:
        plan = replays.plan(_request(asked))
    show(context, f"{plan.markdown()}\n\nReason: {as_markdown(asked['reason'])}")
    context["ti"].xcom_push(key="plan", value=plan.as_dict())
    limit = load_settings().replay.approve_above_rows
    return {
        "views": list(plan.names),
        "dry_run": asked["dry_run"],
        "approval": plan.needs_approval(above_rows=limit),
    }


def next_of_plan(planned: dict[str, Any], *, approve: str, begin: str) -> str | None:
    """The task after the plan; None if nothing is left to do.

    Args:
        planned: from ``plan_replay``.
        approve: id of the task that asks for approval.
        begin: id of the task that begins the replay.
    """
    if planned["dry_run"]:
        log.info("a dry run ends here: nothing was written")
        return None
    if not planned["views"]:
        log.info("there is nothing to compute again; the plan says why")
        return None
    return approve if planned["approval"] else begin


def begin_replay(asked: dict[str, Any], context: Context) -> list[str]:
    """Record the replay; returns the names of its views: those that the plan showed.

    Some of them may no longer be stale when somebody approves, and others may have become so.

    Args:
        asked: from ``validate_replay``.
        context: the task's context.
    """
    from spark_jobs.planning.request import Why

    request, planned = _request(asked), context["ti"].xcom_pull(task_ids="plan")
    if planned is not None:
        request = replace(request, views=tuple(planned["views"]), only_stale=False)
    with replayer() as replays:
        plan = replays.plan(request)
        record = replays.begin(
            plan,
            replay_id=replay_id(context),
            who=who(context),
            why=Why(asked["reason"], asked["ticket"]),
            approved_by=approver(context),
        )
        rows = replays.views(record.replay_id)
    log.info("replay id=%s who=%s", record.replay_id, record.who)
    return [one.view for one in rows]


def build(view: str, context: Context) -> None:
    """Compute a view beside its table and audit it.

    Raises:
        AirflowFailException: a critical expectation failed; a retry would not help.
        AirflowSkipException: there is nothing to compute.
    """
    from spark_jobs.quality.errors import GateBlockedError
    from spark_jobs.state.replays import ViewProgress

    with replayer() as replays:
        try:
            row = replays.build(replay_id(context), view)
        except GateBlockedError as blocked:
            raise AirflowFailException(str(blocked)) from None
    if row.status is ViewProgress.SKIPPED:
        raise AirflowSkipException(row.error)


def difference(context: Context) -> list[str]:
    """Show how each view differs from its published table; returns the views that were built.

    Raises:
        AirflowSkipException: no view was built.
    """
    from spark_jobs.state.replays import ViewProgress

    rows = _rows(context)
    built = [one for one in rows if one.status in {ViewProgress.BUILT, ViewProgress.PUBLISHED}]
    lines = [
        "| view | rows to delete | rows to insert | at the published versions |",
        "|---|---|---|---|",
    ]
    for one in built:
        found = one.difference or {}
        same = "yes" if found.get("same_versions") else "no"
        lines.append(f"| {one.view} | {found.get('leaving')} | {found.get('entering')} | {same} |")
    if not built:
        raise AirflowSkipException("nothing was built")
    show(context, "\n".join(lines))
    for one in built:
        for row in (one.difference or {}).get("examples", ()):
            log.info("%s: %s", one.view, row)
    return [one.view for one in built]


def publish(view: str, context: Context) -> None:
    """Commit a view's change.

    Raises:
        AirflowFailException: a critical expectation failed at newer versions.
    """
    from spark_jobs.gold.recover.replay import Replayer
    from spark_jobs.quality.errors import GateBlockedError

    with refresher() as steps:
        try:
            row = Replayer(steps).publish(replay_id(context), view)
        except GateBlockedError as blocked:
            raise AirflowFailException(str(blocked)) from None
        announce(context, steps.context, [row.attempt_id])
    log.info("published %s version=%s", view, row.published_version)


def follow(context: Context) -> dict[str, str]:
    """Refresh the replayed views and their downstream views.

    Returns:
        one line of text per view, by the view's name.

    Raises:
        AirflowSkipException: nothing was published.
    """
    from spark_jobs.gold.recover.replay import Replayer
    from spark_jobs.state.replays import ViewProgress

    if all(one.status is not ViewProgress.PUBLISHED for one in _rows(context)):
        raise AirflowSkipException("nothing was published")
    with refresher() as steps:
        replays = Replayer(steps)
        news = replays.follow(replay_id(context))
        announce(context, steps.context, replays.followed(replay_id(context)))
    for view, line in news.items():
        log.info("%s: %s", view, line)
    return news


def report(context: Context) -> str:
    """Close the replay's record and report its outcome.

    Raises:
        AirflowFailException: a view failed, or the plan was rejected.
        AirflowSkipException: the form was refused.
        AlertSentError: an earlier task failed, and its alert was sent.
    """
    from spark_jobs.state.replays import ReplayStatus

    given = answer(context)
    if "Reject" in given.get("chosen_options", ()):
        begin_replay(context["ti"].xcom_pull(task_ids="validate"), context)
        with replayer() as replays:
            replays.reject(replay_id(context), who=person(given) or "nobody in time")
        raise AirflowFailException("the plan was rejected; nothing was computed")
    if not _rows(context):
        if context["ti"].xcom_pull(task_ids="validate") is None:
            raise AirflowSkipException("the form was refused; the log of `validate` says why")
        planned = context["ti"].xcom_pull(task_ids="plan")
        if planned is None:
            raise AlertSentError("there was no plan; see the failed task")
        # Not a dry run: another task of the branch may have failed, for example the approval.
        if next_of_plan(planned, approve=APPROVAL_TASK, begin="begin") is not None:
            raise AlertSentError(
                "the replay was not begun and nothing was computed; the task that failed says why, "
                "and goes on where it is cleared"
            )
        return "nothing was written"
    news = context["ti"].xcom_pull(task_ids="follow") or {}
    problems = tuple(f"{view}: {text}" for view, text in news.items() if "failed:" in text)
    with replayer() as replays:
        record = replays.end(replay_id(context), problems=problems)
    if record.status is not ReplayStatus.DONE:
        raise AirflowFailException(record.error or "not every view was published")
    return record.status.value


def replay_id(context: Context, *, kind: str = "replay") -> str:
    """The id of the run's replay: a retried run continues its own replay."""
    return f"{kind}-{context['run_id']}"[:_LONGEST_ID]


@contextmanager
def replayer() -> Iterator[Replayer]:
    """The replays of the project that ``TIDEMARK_PROJECT`` names."""
    from spark_jobs.gold.recover.replay import Replayer

    steps: Refresher
    with refresher() as steps:
        yield Replayer(steps)


def _rows(context: Context) -> list[Any]:
    with replayer() as replays:
        return replays.views(replay_id(context))


def _request(asked: dict[str, Any]) -> Any:
    from spark_jobs.planning.request import ReplayRequest

    return ReplayRequest.from_dict(asked["request"])


def show(context: Context, markdown: str) -> None:
    """Write a table or a plan to the log, and store it for the approval."""
    for line in markdown.splitlines():
        log.info("%s", line)
    context["ti"].xcom_push(key="markdown", value=markdown)

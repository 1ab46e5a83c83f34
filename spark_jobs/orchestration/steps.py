"""The tasks of a refresh; each runs a step and reports its outcome to Airflow.

Outcomes are: skipped (nothing to do), failed without retry (the gate blocks), failed (the retry
policy decides). Spark is imported inside functions, because DAG parsing imports this module.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, Context, Metadata
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from spark_jobs.orchestration.compiled import compiled_manifest
from spark_jobs.orchestration.scope import RunKind, RunScope, run_scope
from spark_jobs.settings import load_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.quality.verdict import Verdict
    from spark_jobs.settings import Settings

# A logger name of its own, so that a task's log shows these lines as the task's output.
log = logging.getLogger("airflow.task.tidemark")


def plan(view: str, context: Context) -> str:
    """Plan the run's refresh and return the attempt's id.

    Raises:
        AirflowSkipException: there is nothing to refresh, or a person must allow the refresh; the
            reason is in the log and in XCom.
        LeaseTakenError: a recomputation is about to publish a view that has no schedule; a retry
            refreshes it.
        ReplayRequestError: the reason for allowing it is missing or too short.
    """
    from spark_jobs.gold.recover.recompute import Recomputer
    from spark_jobs.gold.refresh.again import check_followed
    from spark_jobs.planning.decision import ReasonCode
    from spark_jobs.planning.recompute import Recompute

    scope = scope_of(context)
    with refresher() as steps:
        if scope.time is None:
            planned = steps.plan(
                view,
                tick=scope.tick,
                force=scope.force,
                let_pass=allowed(context),
                asked_by=who(context) if scope.asked else None,
            )
        else:
            asked = Recompute(code=ReasonCode.BACKFILLED, time=scope.time)
            planned = Recomputer(steps).plan(view, tick=scope.tick, asked=asked)
        check_followed(steps.context, planned)
    context["ti"].xcom_push(key="plan", value=planned.as_dict())
    log.info("%s tick=%s inputs=%s", planned.line, planned.tick, planned.vector)
    if planned.skips:
        raise AirflowSkipException(planned.line)
    return planned.attempt_id


def stage(attempt_id: str) -> str:
    """Compute the result beside the published table; returns the attempt that was staged.

    If another refresh overtook it, or another definition was applied, it is planned again as a new
    attempt.

    Raises:
        AirflowSkipException: after that there is nothing left to refresh.
        LakehouseError: any error of ``Refresher.stage``.
    """
    from spark_jobs.gold.recover.recompute import Recomputer
    from spark_jobs.gold.refresh.again import stage_on_newest

    with refresher() as steps:
        if backfills(steps, attempt_id):
            newest: str | None = Recomputer(steps).stage(attempt_id)
        else:
            newest = stage_on_newest(steps, attempt_id)
        if newest is None:
            raise AirflowSkipException(_nothing_left(attempt_id))
        attempt_id = newest
        staged = steps.stage(attempt_id)
    log.info("staged rows=%d bytes=%d location=%s", staged.rows, staged.bytes, staged.location)
    return attempt_id


def audit(attempt_id: str) -> str:
    """Audit the staged result; returns the attempt that was audited.

    If another refresh overtook it, it is planned and computed again as a new attempt.

    Raises:
        AirflowFailException: a critical expectation failed; a retry would not help.
        AirflowSkipException: it failed as in an earlier result that still waits for a person, or
            after that there is nothing left to refresh.
    """
    from spark_jobs.gold.recover.recompute import Recomputer
    from spark_jobs.gold.refresh.again import audit_on_newest, newest_attempt
    from spark_jobs.gold.refresh.staging import staged_at
    from spark_jobs.quality.errors import GateBlockedError, StillBlockedError
    from spark_jobs.quality.verdict import Verdict

    with refresher() as steps:
        store = steps.context.store
        try:
            if backfills(steps, attempt_id):
                newest: str | None = Recomputer(steps).build(attempt_id)
            else:
                newest = audit_on_newest(steps, attempt_id)
            if newest is None:
                raise AirflowSkipException(_nothing_left(attempt_id))
            attempt_id = newest
            log_verdict(Verdict.from_dict(store.attempt(attempt_id).verdict or {}))
        except StillBlockedError as still:
            log_verdict(still.verdict)
            raise AirflowSkipException(str(still)) from None
        except GateBlockedError as blocked:
            log_verdict(blocked.verdict)
            attempt = newest_attempt(store, attempt_id)
            days = steps.context.settings.gold.staging_days
            log.info("blocked result=%s kept_days=%g", staged_at(steps.context, attempt), days)
            raise AirflowFailException(str(blocked)) from None
    return attempt_id


def publish(attempt_id: str, asset: Asset) -> Iterator[Metadata]:
    """Commit the audited result and announce it.

    Raises:
        AirflowFailException: it was recomputed on newer content, and the gate blocks the result.
        AirflowSkipException: a newer attempt was already published, or no row changed: asset
            events are for changes only.
    """
    from spark_jobs.gold.recover.recompute import Recomputer
    from spark_jobs.gold.refresh.again import publish_on_newest
    from spark_jobs.gold.telemetry.asset_events import event_of
    from spark_jobs.quality.errors import GateBlockedError, StillBlockedError

    with refresher() as steps:
        try:
            if backfills(steps, attempt_id):
                published = Recomputer(steps).publish(attempt_id)
            else:
                published = publish_on_newest(steps, attempt_id)
        except StillBlockedError as still:
            log_verdict(still.verdict)
            raise AirflowSkipException(str(still)) from None
        except GateBlockedError as blocked:
            log_verdict(blocked.verdict)
            raise AirflowFailException(str(blocked)) from None
        attempt_id = published.attempt_id
        event = event_of(steps.context, attempt_id)
    if published.version is None:
        raise AirflowSkipException(f"a newer attempt than {attempt_id} has published")
    log.info("published version=%d changed=%s", published.version, published.changed)
    yield _asset_event(asset, event, version=published.version)


def _nothing_left(attempt_id: str) -> str:
    return f"nothing is left of {attempt_id}: it was overtaken"


def backfills(steps: Refresher, attempt_id: str) -> bool:
    """Whether an attempt belongs to a backfill."""
    return steps.context.store.attempt(attempt_id).reason_code == "BACKFILLED"


def report(attempt_id: str, asset: Asset) -> Iterator[Metadata]:
    """Report the outcome of a Spark application's refresh from the ledger.

    If another refresh overtook the attempt, it is that of the last one planned in its place.

    Raises:
        AirflowFailException: the gate blocks the result.
        AirflowSkipException: a newer attempt was already published, or no row changed.
    """
    from spark_jobs.gold.refresh.again import newest_attempt
    from spark_jobs.gold.telemetry.asset_events import event_of
    from spark_jobs.quality.verdict import Verdict
    from spark_jobs.state.attempts import AttemptStatus

    with refresher() as steps:
        attempt = newest_attempt(steps.context.store, attempt_id)
        event = event_of(steps.context, attempt.attempt_id)
    if attempt.verdict is not None:
        log_verdict(Verdict.from_dict(attempt.verdict))
    if attempt.status is AttemptStatus.SUPERSEDED:
        faster = f"a newer attempt than {attempt_id} has published"
        raise AirflowSkipException(attempt.error or faster)
    if attempt.status is not AttemptStatus.PUBLISHED or attempt.published_version is None:
        unfinished = f"attempt {attempt.attempt_id} is {attempt.status}"
        raise AirflowFailException(attempt.error or unfinished)
    yield _asset_event(asset, event, version=attempt.published_version)


def _asset_event(asset: Asset, event: dict[str, Any] | None, *, version: int) -> Metadata:
    """The asset event of a task; Airflow emits one for each successful task with an outlet.

    Raises:
        AirflowSkipException: no row changed.
    """
    if event is None:
        raise AirflowSkipException(f"published as version {version}; no row changed")
    return Metadata(asset, extra=event)


def verify(view: str) -> dict[str, Any]:
    """Compare a sample of the published table with its SQL.

    Returns:
        the result, as from ``Verification.as_dict``.

    Raises:
        AirflowSkipException: nothing was published yet.
        AirflowFailException: the table differs from its SQL.
    """
    from spark_jobs.gold.base.errors import NotPublishedError
    from spark_jobs.gold.verify.published import verify as compare
    from spark_jobs.gold.verify.sampling import any_buckets

    with refresher() as steps:
        try:
            found = compare(steps.context, view, buckets=any_buckets)
        except NotPublishedError as nothing:
            raise AirflowSkipException(nothing.primary) from None
    log.info("%s: %s (version %d of %s)", found.finding, found.detail, found.version, found.vector)
    if not found.passed:
        raise AirflowFailException(f"gold.{view}: {found.finding}: {found.detail}")
    return found.as_dict()


def scope_of(context: Context) -> RunScope:
    """The scope of the current run."""
    run: Any = context["dag_run"]
    return run_scope(
        kind=RunKind(str(run.run_type.value)),
        run_id=run.run_id,
        data_interval_start=run.data_interval_start,
        data_interval_end=run.data_interval_end,
        clear_number=getattr(run, "clear_number", None) or 0,
        force=bool(context["params"].get("force")),
    )


def who(context: Context) -> str:
    """Who triggered the run."""
    run: Any = context["dag_run"]
    return f"airflow:{getattr(run, 'triggering_user_name', None) or 'unknown'}"


def allowed(context: Context) -> str | None:
    """Who allows an unusually large refresh, and the reason; None if nobody does.

    Raises:
        ReplayRequestError: the reason is too short.
    """
    from spark_jobs.planning.request import why

    reason = context["params"].get("let_pass")
    return f"let pass by {who(context)}: {why(reason).reason}" if reason else None


@contextmanager
def refresher() -> Iterator[Refresher]:
    """The refresh of the project that ``TIDEMARK_PROJECT`` names.

    A Connect session ends with the task, since the server would keep it for an hour. A classic
    session belongs to the process.

    Raises:
        ManifestMissingError: the project was not compiled.
        ManifestUnreadableError: another release compiled it.
        ControlUnreachableError: the control database cannot be reached.
    """
    from spark_jobs.gold.refresh.steps import Refresher
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.session import open_session

    opened: list[SparkSession] = []

    def session(settings: Settings) -> SparkSession:
        opened.append(open_session(settings))
        return opened[-1]

    settings = load_settings()
    with ControlStore.open(settings.control_url) as store:
        try:
            manifest = compiled_manifest(settings)
            yield Refresher(settings, manifest, store, session_factory=session, announces=True)
        finally:
            for one in opened:
                if ".connect." in type(one).__module__:
                    one.stop()


def log_verdict(verdict: Verdict) -> None:
    """Write the verdict table to the task's log."""
    from rich.console import Console

    from spark_jobs.quality.report import verdict_table

    console = Console(width=160, color_system=None, legacy_windows=False)
    with console.capture() as captured:
        console.print(verdict_table(verdict))
    for line in captured.get().splitlines():
        log.info("%s", line.rstrip())

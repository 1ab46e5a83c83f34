"""The ledger of a refresh: opens attempts, records steps, settles attempts left open."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from time import perf_counter
from typing import Any, Unpack

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.base.errors import AttemptStateError, BaseMovedError
from spark_jobs.gold.base.publications import latest_publication, publication_of
from spark_jobs.gold.compute.protocol import DUCKDB
from spark_jobs.gold.refresh.staging import discard
from spark_jobs.gold.telemetry.reporting import report_begin, report_end
from spark_jobs.planning.breaker import ASKED_FOR
from spark_jobs.planning.decision import Incremental, ReasonCode, rule_of, scope_of
from spark_jobs.planning.experience import PastRefresh
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.planning.watermark import transaction_app_id
from spark_jobs.planning.work import covers_view, decision_in
from spark_jobs.state.attempts import AttemptChange, AttemptStatus, RefreshAttempt
from spark_jobs.state.ticks import CONTINUOUS
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log
from spark_jobs.storage.errors import LogUnreadableError

OPEN = (AttemptStatus.PLANNED, AttemptStatus.STAGED, AttemptStatus.AUDITED)
# Attempts whose staged result may still exist.
_UNSETTLED = (*OPEN, AttemptStatus.FAILED, AttemptStatus.BLOCKED)
_LONGEST_ERROR = 4000
# The cost model looks at this many of the last refreshes.
_REMEMBERED = 40
# Why a definition is computed for the first time.
_COLD = frozenset({ReasonCode.FIRST_BUILD, ReasonCode.DEFINITION_CHANGED})
# The usual number of rows is that of this many publications.
_COUNTED = 20


def open_attempt(
    context: GoldContext,
    plan: RefreshPlan,
    *,
    epoch: int,
    seconds: float,
    asked_by: str | None = None,
) -> RefreshAttempt:
    """Open an attempt for a plan, or return the open one that an interrupted run left.

    An open attempt of the same tick, definition and versions is the same work, so what it staged is
    reused.
    """
    vector, scope = plan.vector.as_dict(), scope_of(plan.decision)
    if not plan.skips:
        for found in context.store.attempts(plan.view, tick=plan.tick, statuses=OPEN):
            same = found.fingerprint == plan.fingerprint and found.vector == vector
            same = same and found.scope == scope
            if same and found.epoch == epoch and found.reason_code == plan.reason.code:
                return found
    attempt = context.store.create_attempt(
        RefreshAttempt(
            attempt_id=_attempt_id(plan),
            view=plan.view,
            tick=plan.tick,
            status=AttemptStatus.SKIPPED if plan.skips else AttemptStatus.PLANNED,
            decision=plan.word,
            rule=rule_of(plan.decision),
            reason_code=plan.reason.code.value,
            reason=plan.reason.text,
            epoch=epoch,
            fingerprint=plan.fingerprint,
            vector=vector,
            scope=scope,
            estimate=None if plan.estimate is None else plan.estimate.as_dict(),
            actual={"seconds": {"plan": round(seconds, 3)}},
            started_at=plan.clock,
            updated_at=utc_now(),
            asked_by=asked_by,
        ),
        above=_last_sequence(context, plan.view, epoch),
    )
    tell = report_end if plan.skips else report_begin
    tell(context, attempt)
    return attempt


def _last_sequence(context: GoldContext, view: str, epoch: int) -> int:
    """The last sequence number of an epoch in the published table's log; 0 if there is none.

    The control database may have been lost. A rewrite with few rows has no transaction id, so the
    newest publication counts too.
    """
    location = context.published_at(view)
    committed = log.transaction_version(location, transaction_app_id(view, epoch)) or 0
    latest = latest_publication(location)
    if latest is None or latest.watermark.epoch != epoch:
        return committed
    return max(committed, latest.watermark.sequence)


def end_attempt(
    context: GoldContext, attempt_id: str, **change: Unpack[AttemptChange]
) -> RefreshAttempt:
    """Record how an attempt ended, and report it."""
    attempt = context.store.update_attempt(attempt_id, **change)
    report_end(context, attempt)
    return attempt


@contextmanager
def timed_step(
    context: GoldContext, attempt: RefreshAttempt, step: str, *, done: AttemptStatus | None = None
) -> Iterator[dict[str, Any]]:
    """Measure a step; an error in it marks the attempt as failed.

    An attempt that a newer publication overtook is superseded instead, whatever the error was: its
    staged files may be deleted while the step reads them.

    Args:
        context: settings, manifest and locations of the project.
        attempt: its ledger row when the step begins.
        step: its name.
        done: the attempt's status afterwards; None: unchanged.

    Yields:
        a dict of facts, which the step fills; they become keys of ``actual`` in the ledger, as do
            the step's ``seconds``.

    Raises:
        BaseMovedError: the step failed, and a newer publication had overtaken the attempt.
    """
    facts: dict[str, Any] = {}
    started = perf_counter()
    try:
        yield facts
    except Exception as error:
        if _supersede_overtaken(context, attempt):
            raise _overtaken(attempt) from error
        text = str(error)[:_LONGEST_ERROR]
        end_attempt(
            context, attempt.attempt_id, status=AttemptStatus.FAILED, error=f"{step}: {text}"
        )
        raise
    actual = attempt.actual or {}
    taken: dict[str, float] = actual.get("seconds", {})
    # A step that is repeated adds to what it took before.
    seconds = {**taken, step: round(taken.get(step, 0.0) + perf_counter() - started, 3)}
    change: AttemptChange = {} if done is None else {"status": done}
    change["actual"] = {**actual, **facts, "seconds": seconds}
    context.store.update_attempt(attempt.attempt_id, **change)


def nothing_staged(context: GoldContext, attempt: RefreshAttempt) -> LakehouseError:
    """The error of an audit that finds no staged result: removed by a newer refresh, or never made.

    Returns:
        ``BaseMovedError`` or ``AttemptStateError``.
    """
    if _supersede_overtaken(context, attempt):
        return _overtaken(attempt)
    return AttemptStateError(attempt.attempt_id, status="not staged", step="audit")


def _supersede_overtaken(context: GoldContext, attempt: RefreshAttempt) -> bool:
    """Record an attempt as superseded if a newer publication overtook it; returns whether."""
    location = context.published_at(attempt.view)
    try:
        latest = latest_publication(location)
        overtaken = latest is not None and attempt.place < latest.watermark.place
        if not overtaken or publication_of(location, attempt.attempt_id) is not None:
            return False
    except (LogUnreadableError, OSError):
        # The error of the step says more.
        return False
    discard(context, attempt)
    end_attempt(context, attempt.attempt_id, status=AttemptStatus.SUPERSEDED, error=None)
    return True


def _overtaken(attempt: RefreshAttempt) -> BaseMovedError:
    return BaseMovedError(attempt.view, "a newer refresh of it was published")


def settle(context: GoldContext, view: str) -> frozenset[str]:
    """Update open attempts of a view from the published table's log.

    An attempt that was killed after its commit was published; one whose sequence number is below
    the newest publication's can no longer be. An attempt that failed after its commit, for instance
    because the control database was away, was published too.

    Returns:
        ids of the attempts that were recorded as open or failed and had been published.
    """
    location = context.published_at(view)
    latest = latest_publication(location)
    published: set[str] = set()
    if latest is None:
        return frozenset()
    last = context.store.find_attempt(latest.watermark.attempt)
    failed = [last] if last is not None and last.status is AttemptStatus.FAILED else []
    for attempt in [*failed, *context.store.attempts(view, statuses=OPEN, limit=100)]:
        found = publication_of(location, attempt.attempt_id)
        overtaken = attempt.place < latest.watermark.place
        if found is None and not overtaken:
            continue
        discard(context, attempt)
        end_attempt(
            context,
            attempt.attempt_id,
            status=AttemptStatus.SUPERSEDED if found is None else AttemptStatus.PUBLISHED,
            published_version=None if found is None else found.version,
            error=None,
        )
        if found is not None:
            published.add(attempt.attempt_id)
    return frozenset(published)


def past_refreshes(context: GoldContext, view: str) -> tuple[PastRefresh, ...]:
    """Cost of earlier refreshes of the view's current definition, newest first."""
    fingerprint = context.entry(view).fingerprint
    published = context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=_REMEMBERED)
    found = []
    for attempt, incremental in _of_whole_view(published):
        actual = attempt.actual or {}
        seconds = actual.get("seconds", {})
        same = attempt.fingerprint == fingerprint
        if same and {"stage", "publish"} <= seconds.keys() and not attempt.resumed:
            estimate = attempt.estimate or {}
            found.append(
                PastRefresh(
                    incremental=incremental,
                    seconds=seconds["stage"] + seconds["publish"],
                    changed=estimate.get("changed"),
                    total=estimate.get("rows"),
                    counted=bool(actual.get("counted")),
                    in_process=actual.get("engine") == DUCKDB,
                    tried=attempt.reason_code == ReasonCode.FULL_IS_TRIED,
                    cold=attempt.reason_code in _COLD,
                )
            )
    return tuple(found)


def tried_in_vain(context: GoldContext, view: str) -> bool:
    """Whether a full refresh of the view's definition was tried lately, and was not published.

    It may have been too large for the machine; trying it again and again would stop the view.
    """
    fingerprint = context.entry(view).fingerprint
    return any(
        attempt.reason_code == ReasonCode.FULL_IS_TRIED
        and attempt.status is not AttemptStatus.PUBLISHED
        and attempt.fingerprint == fingerprint
        for attempt in context.store.attempts(view, limit=_REMEMBERED)
    )


def rows_read(context: GoldContext, view: str) -> list[int]:
    """Input rows that the view's last refreshes read, of any definition, where logs counted them.

    Refreshes that a person asked for, and the first build, are left out.
    """
    unusual = {*ASKED_FOR, ReasonCode.FIRST_BUILD}
    published = context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=_REMEMBERED)
    estimates = (
        (attempt.estimate or {}).get("changed" if incremental else "rows")
        for attempt, incremental in _of_whole_view(published)
        if attempt.reason_code not in unusual
    )
    return [rows for rows in estimates if rows is not None]


def _of_whole_view(
    attempts: Iterable[RefreshAttempt],
) -> Iterator[tuple[RefreshAttempt, bool]]:
    """Attempts that refreshed the whole view, and whether each was incremental.

    Ranges and rollbacks are left out, and so are decisions that only a newer release knows.
    """
    for attempt in attempts:
        try:
            decision = decision_in(attempt)
        except ValueError:
            continue
        if covers_view(decision):
            yield attempt, isinstance(decision, Incremental)


def past_row_counts(context: GoldContext, view: str) -> tuple[int, ...]:
    """Rows of the last publications of the view's current definition, newest first."""
    fingerprint = context.entry(view).fingerprint
    published = context.store.attempts(view, statuses=(AttemptStatus.PUBLISHED,), limit=_COUNTED)
    counts = ((one.actual or {}).get("rows") for one in published if one.fingerprint == fingerprint)
    return tuple(count for count in counts if count is not None)


def keep_newest_unpublished(context: GoldContext, view: str) -> None:
    """Discard failed and blocked results of a continuous view, except the newest of each status.

    A view that is retried again and again would fill the disk within hours. A failed result does
    not replace a blocked one, which a person may still release.
    """
    for status in (AttemptStatus.FAILED, AttemptStatus.BLOCKED):
        found = context.store.attempts(view, tick=CONTINUOUS, statuses=(status,), limit=2)
        for attempt in found[1:]:
            discard(context, attempt)


def sweep(context: GoldContext, view: str) -> None:
    """Discard blocked and failed results and pins that are older than the settings say.

    Attempts of continuous refreshes are deleted too: there may be thousands a day.
    """
    days = context.settings.gold.staging_days
    for attempt in context.store.attempts(view, statuses=_UNSETTLED, limit=100):
        if (utc_now() - attempt.updated_at).total_seconds() > days * 86_400:
            discard(context, attempt)
    pins_kept = timedelta(days=context.settings.gold.tick_days)
    context.store.forget_ticks(before=utc_now() - pins_kept)
    kept = timedelta(days=max(days, context.settings.gold.tick_days))
    before = utc_now() - kept
    context.store.forget_attempts(view, tick=CONTINUOUS, before=before, keep=_REMEMBERED)


def with_attempt(plan: RefreshPlan, attempt: RefreshAttempt) -> RefreshPlan:
    """The plan with the id and clock of its attempt; a resumed attempt keeps its clock."""
    return replace(plan, attempt_id=attempt.attempt_id, clock=attempt.started_at)


def _attempt_id(plan: RefreshPlan) -> str:
    return f"{plan.view}-{plan.clock:%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"

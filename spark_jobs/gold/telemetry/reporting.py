"""Reports attempts to the systems that the settings name: metrics and lineage."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.telemetry.sending import Sender
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt

METRICS: Final = Sender("metrics")
LINEAGE: Final = Sender("lineage events")


def report_begin(context: GoldContext, attempt: RefreshAttempt) -> None:
    """Report that an attempt has begun to compute."""
    if context.settings.lineage.transport:
        LINEAGE.send(partial(_lineage, context, attempt), about=attempt.attempt_id)


def report_end(context: GoldContext, attempt: RefreshAttempt) -> None:
    """Report how an attempt ended; skipped attempts have no lineage event."""
    if context.settings.metrics.otlp:
        METRICS.send(partial(_metrics, context, attempt), about=attempt.attempt_id)
    if context.settings.lineage.transport and attempt.status is not AttemptStatus.SKIPPED:
        LINEAGE.send(partial(_lineage, context, attempt), about=attempt.attempt_id)


# Imported only if a receiver is configured: both imports are slow.


def _metrics(context: GoldContext, attempt: RefreshAttempt) -> Callable[[], object]:
    from spark_jobs.gold.telemetry import otlp  # noqa: PLC0415

    return partial(otlp.send, otlp.measured(context, attempt), context.settings.metrics.otlp)


def _lineage(context: GoldContext, attempt: RefreshAttempt) -> Callable[[], object]:
    from spark_jobs.gold.telemetry import lineage  # noqa: PLC0415

    event = lineage.event_of(context, attempt)
    return partial(lineage.send, event, context.settings.lineage.transport)

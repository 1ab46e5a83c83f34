"""Which systems hear of an attempt to refresh a view: metrics and lineage, as the settings say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from spark_jobs.gold.context import GoldContext
from spark_jobs.gold.telemetry.sending import Sender
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt

METRICS: Final = Sender("metrics")
LINEAGE: Final = Sender("lineage events")


def report_begin(context: GoldContext, attempt: RefreshAttempt) -> None:
    """Tell that an attempt began to compute."""
    if context.settings.lineage.transport:
        LINEAGE.send(partial(_lineage, context, attempt), about=attempt.attempt_id)


def report_end(context: GoldContext, attempt: RefreshAttempt) -> None:
    """Tell how an attempt ended; of one that was skipped lineage has nothing to say."""
    if context.settings.metrics.otlp:
        METRICS.send(partial(_metrics, context, attempt), about=attempt.attempt_id)
    if context.settings.lineage.transport and attempt.status is not AttemptStatus.SKIPPED:
        LINEAGE.send(partial(_lineage, context, attempt), about=attempt.attempt_id)


# Only who has a receiver pays for importing these.


def _metrics(context: GoldContext, attempt: RefreshAttempt) -> Callable[[], object]:
    from spark_jobs.gold.telemetry import otlp  # noqa: PLC0415

    return partial(otlp.send, otlp.measured(context, attempt), context.settings.metrics.otlp)


def _lineage(context: GoldContext, attempt: RefreshAttempt) -> Callable[[], object]:
    from spark_jobs.gold.telemetry import lineage  # noqa: PLC0415

    event = lineage.event_of(context, attempt)
    return partial(lineage.send, event, context.settings.lineage.transport)

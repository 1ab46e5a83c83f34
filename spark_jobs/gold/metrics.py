"""Tells a metrics server how an attempt to refresh a view ended, where the settings name one.

A server that is down or slow changes nothing about a refresh: what was published is published,
and whoever refreshes goes on after a moment, whether the metrics arrived or not.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from spark_jobs.gold.context import GoldContext
from spark_jobs.state.attempts import RefreshAttempt

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricsData

# So long a process that ends soon gives its metrics a head start.
PATIENCE_SECONDS: Final = 0.25

log = logging.getLogger(__name__)
_under_way = threading.Lock()


def report(context: GoldContext, attempt: RefreshAttempt) -> None:
    """Send what an attempt that came to an end counted.

    Metrics that come while others are under way are dropped, so that they cannot pile up.
    """
    address = context.settings.metrics.otlp
    if not address or not _under_way.acquire(blocking=False):
        return
    try:
        # Only who has a metrics server pays for importing this.
        from spark_jobs.gold import otlp  # noqa: PLC0415

        found = otlp.measured(context, attempt)
        sender = threading.Thread(target=_send, args=(otlp.send, found, address), daemon=True)
        sender.start()
    except Exception:
        _under_way.release()
        log.exception("no metrics of %s", attempt.attempt_id)
    else:
        sender.join(PATIENCE_SECONDS)


def _send(send: Callable[[MetricsData, str], None], found: MetricsData, address: str) -> None:
    try:
        send(found, address)
    except Exception:
        log.exception("metrics were not sent to %s", address)
    finally:
        _under_way.release()

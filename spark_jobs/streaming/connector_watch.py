"""Restarts the local stack's connector after it failed.

Kafka Connect does not restart a failed task. A database that restarts while the connector
connects to it fails the task, and silver would stand still until a person came.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import httpx

from spark_jobs.errors import LakehouseError
from spark_jobs.settings import Settings
from spark_jobs.stack.connect import (
    CONNECTOR,
    client,
    connector_status,
    first_trace_line,
    restart_failed,
    states,
)

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
# The pause before a restart. It doubles with each failure: a cause may need a person.
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 600.0
# A connector that has run for this long has recovered: the next failure is a new one.
RECOVERED_SECONDS = 60.0
STOP_SECONDS = 10.0


@dataclass
class ConnectorWatch:
    """Looks at the connector every few seconds.

    Attributes:
        api: opens a client of Kafka Connect's REST interface.
        clock: seconds of a monotonic clock.
    """

    api: Callable[[], httpx.Client]
    clock: Callable[[], float] = time.monotonic
    _pause: float = FIRST_PAUSE_SECONDS
    _failed_at: float | None = None
    _running_since: float | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="connector", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End between two looks."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def look(self) -> bool:
        """Restart the failed tasks once their pause is over; returns whether it did.

        Raises:
            httpx.HTTPError: Kafka Connect does not answer.
            SecretMissingError: no worker was ever started here.
        """
        now = self.clock()
        with self.api() as api:
            status = connector_status(api)
            if status is None or "FAILED" not in states(status):
                self._note_running(now)
                return False
            self._running_since = None
            if self._failed_at is None:
                self._failed_at = now
            if now - self._failed_at < self._pause:
                return False
            logger.warning(
                "connector restarts connector=%s cause=%s", CONNECTOR, first_trace_line(status)
            )
            restart_failed(api)
        self._failed_at, self._pause = None, min(self._pause * 2, LONGEST_PAUSE_SECONDS)
        return True

    def _note_running(self, now: float) -> None:
        self._failed_at = None
        if self._running_since is None:
            self._running_since = now
        elif now - self._running_since > RECOVERED_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self.look()
            except (httpx.HTTPError, LakehouseError) as error:
                # The status of the stack says that a worker does not answer.
                logger.debug("connector not seen error=%r", error)


@contextmanager
def watching_connector(settings: Settings) -> Iterator[None]:
    """Restart the connector after failures as long as the block runs.

    A Kafka Connect at ``kafka_connect.url`` belongs to somebody else, whose operator restarts
    its connectors.
    """
    if settings.kafka_connect.url:
        yield
        return
    watch = ConnectorWatch(partial(client, settings))
    watch.start()
    try:
        yield
    finally:
        watch.stop()

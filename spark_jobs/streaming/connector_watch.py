"""Restarts the connector after a failure; the local stack's also when it reads nothing.

Kafka Connect does not restart a failed task. A database that restarts while the connector is
connecting to it makes the task fail, and silver would get no changes until someone restarted it.
A task whose connection lost its packets does not fail for 15 minutes; see ``stack.slot``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import httpx
import psycopg

from spark_jobs.background import BackgroundLoop
from spark_jobs.settings import Settings
from spark_jobs.stack.connect import (
    client,
    connector_status,
    first_trace_line,
    restart_connector,
    states,
)
from spark_jobs.stack.connector import CONNECTOR, SLOT
from spark_jobs.stack.slot import connector_dsn, unread

logger = logging.getLogger(__name__)

LOOK_SECONDS = 5.0
LONGEST_LOOK_SECONDS = 20.0
# The pause before a restart. It doubles with each failure: a person may have to fix the cause.
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 600.0
# A connector that has run for this long has recovered: the next failure starts at the first pause.
RECOVERED_SECONDS = 60.0
# A restart of a worker leaves the slot without a reader for some seconds.
UNREAD_SECONDS = 60.0
# Each look at the slot opens a connection to the source database.
SLOT_SECONDS = 20.0
STOP_SECONDS = 10.0


@dataclass
class ConnectorWatch:
    """Checks the connector; the streaming application calls ``look`` periodically.

    It keeps its connection to a worker until a request fails, and then asks the next worker.

    Attributes:
        workers: one function for each Kafka Connect worker, which opens a client of its REST API.
        unread: whether nobody reads the connector's slot; may raise ``psycopg.Error``.
        clock: seconds of a monotonic clock.
    """

    workers: Sequence[Callable[[], httpx.Client]]
    unread: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    _worker: int = 0
    _client: httpx.Client | None = None
    _pause: float = FIRST_PAUSE_SECONDS
    _failed_at: float | None = None
    _running_since: float | None = None
    _unread_since: float | None = None
    _slot_seen_at: float | None = None

    def look(self) -> bool:
        """Restart what failed or reads nothing; returns whether a restart was requested.

        Raises:
            httpx.HTTPError: no worker answers.
            SecretMissingError: no worker was ever started here.
        """
        for left in reversed(range(len(self.workers))):
            try:
                return self._check(self._open())
            except httpx.HTTPError:
                # A worker that restarts may get a new certificate, so the client is not used again.
                self.close()
                self._worker = (self._worker + 1) % len(self.workers)
                if not left:
                    raise
        return False

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
        self._client = None

    def _open(self) -> httpx.Client:
        if self._client is None:
            self._client = self.workers[self._worker]()
        return self._client

    def _check(self, api: httpx.Client) -> bool:
        now = self.clock()
        status = connector_status(api, strict=True)
        if status is None or "FAILED" not in states(status):
            self._failed_at = None
            if status and set(states(status)) == {"RUNNING"} and self._reads_nothing(now):
                self._restart(api, "nobody reads its slot", only_failed=False)
                return True
            if self._unread_since is None:
                self._note_running(now)
            return False
        self._running_since = self._unread_since = None
        if self._failed_at is None:
            self._failed_at = now
        if now - self._failed_at < self._pause:
            return False
        self._restart(api, first_trace_line(status), only_failed=True)
        return True

    def _restart(self, api: httpx.Client, cause: str, *, only_failed: bool) -> None:
        logger.warning("connector restarts connector=%s cause=%s", CONNECTOR, cause)
        restart_connector(api, only_failed=only_failed).raise_for_status()
        self._failed_at = self._unread_since = None
        self._pause = min(self._pause * 2, LONGEST_PAUSE_SECONDS)

    def _reads_nothing(self, now: float) -> bool:
        """Whether nobody has read the slot for longer than the pause."""
        if self._slot_seen_at is None or now - self._slot_seen_at >= SLOT_SECONDS:
            self._slot_seen_at = now
            try:
                nobody = self.unread()
            except psycopg.Error:
                nobody = False
            if not nobody:
                self._unread_since = None
            elif self._unread_since is None:
                self._running_since, self._unread_since = None, now
        since = self._unread_since
        return since is not None and now - since >= max(UNREAD_SECONDS, self._pause)

    def _note_running(self, now: float) -> None:
        if self._running_since is None:
            self._running_since = now
        elif now - self._running_since > RECOVERED_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS


@contextmanager
def watching_connector(settings: Settings) -> Iterator[None]:
    """Restart the connector after failures, for the duration of the block.

    A Kafka Connect at ``kafka_connect.url`` has an operator who restarts its connectors, unless
    ``kafka_connect.restart_failed`` says that the streams do it, as in our own pods. Its database
    is not asked: the streams need no password for it.
    """
    if settings.kafka_connect.url and not settings.kafka_connect.restart_failed:
        yield
        return
    if settings.kafka_connect.url:
        watch = ConnectorWatch([partial(client, settings)], unread=lambda: False)
    else:
        numbers = range(1, settings.local.connect_workers + 1)
        watch = ConnectorWatch(
            [partial(client, settings, number) for number in numbers],
            unread=lambda: unread(connector_dsn(settings), SLOT),
        )
    loop = BackgroundLoop(
        "connector",
        watch.look,
        "connector not checked",
        pause=LOOK_SECONDS,
        longest_pause=LONGEST_LOOK_SECONDS,
        stop_seconds=STOP_SECONDS,
        # The status of the stack shows that workers do not answer.
        level=logging.DEBUG,
    )
    try:
        with loop:
            yield
    finally:
        watch.close()

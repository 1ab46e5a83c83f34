"""Restarts the streams and Kafka Connect after the host's clock was set back.

Spark starts the batches of a stream at times of the clock, and Debezium waits by it too. Both stand
still until the clock has caught up, while they report that they run. A restart of the connector
does not help, because its task waits and does not stop.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spark_jobs.background import BackgroundLoop
from spark_jobs.settings import Settings
from spark_jobs.stack.connect import worker_names
from spark_jobs.stack.supervisor import Supervisor

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
LONGEST_LOOK_SECONDS = 20.0
STOP_SECONDS = 10.0
# After a smaller correction, the streams wait no longer than this.
SET_BACK_SECONDS = 10.0


@dataclass
class ClockWatch:
    """Compares the host's clock with the monotonic one; ``look`` is called periodically.

    Attributes:
        restart: called with the seconds by which the clock was set back.
        clock: seconds of the host's clock.
        monotonic: seconds of a monotonic clock.
    """

    restart: Callable[[float], None]
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    _ahead: float | None = None

    def look(self) -> bool:
        """Whether the clock was set back since the last call; calls ``restart`` then."""
        before, self._ahead = self._ahead, self.clock() - self.monotonic()
        if before is None or before - self._ahead < SET_BACK_SECONDS:
            return False
        self.restart(before - self._ahead)
        return True


@contextmanager
def watching_clock(
    settings: Settings, stopping: threading.Event, *, clock: Callable[[], float] = time.time
) -> Iterator[None]:
    """Restart after the clock was set back, for the duration of the block.

    Args:
        settings: of the stack whose Kafka Connect restarts.
        stopping: ends the application; its supervisor starts it again.
        clock: seconds of the host's clock.
    """

    def restart(seconds: float) -> None:
        logger.warning("clock was set back, so streams and Connect restart seconds=%.0f", seconds)
        try:
            _restart_workers(settings)
        finally:
            stopping.set()

    loop = BackgroundLoop(
        "clock",
        ClockWatch(restart, clock).look,
        "clock not checked",
        pause=LOOK_SECONDS,
        longest_pause=LONGEST_LOOK_SECONDS,
        stop_seconds=STOP_SECONDS,
    )
    with loop:
        yield


def _restart_workers(settings: Settings) -> None:
    """Kill the stack's own workers; a Kafka Connect elsewhere has its own clock."""
    if settings.kafka_connect.url:
        return
    supervisor = Supervisor(settings)
    if not supervisor.answers():
        logger.warning("restart Kafka Connect: its supervisor does not answer here")
        return
    for name in worker_names(settings):
        supervisor.kill_part(name)

"""A thread that calls a function periodically, until it is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from spark_jobs.errors import LakehouseError

logger = logging.getLogger(__name__)


@dataclass
class BackgroundLoop(AbstractContextManager["BackgroundLoop"]):
    """Calls a function in a daemon thread, from the start to the end of a ``with`` block.

    An exception does not end the thread. It is logged, once for as long as the same one repeats,
    and each one doubles the pause until a call succeeds.

    Attributes:
        name: of the thread.
        work: the function.
        failure: what the log says when ``work`` raises.
        pause: seconds before each call.
        longest_pause: upper bound of the pause after exceptions, in seconds.
        stop_seconds: how long the end of the block waits for a call that is running.
        level: of the log record.
        stopping: set at the end of the block; long work checks it.
    """

    name: str
    work: Callable[[], object]
    failure: str
    pause: float
    longest_pause: float
    stop_seconds: float
    level: int = logging.WARNING
    stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> BackgroundLoop:
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        if self._thread is not None:
            self._thread.join(self.stop_seconds)

    def _run(self) -> None:
        pause, before = self.pause, ""
        while not self.stopping.wait(pause):
            try:
                self.work()
            except Exception as error:  # noqa: BLE001 - the next call may succeed
                problem = error.primary if isinstance(error, LakehouseError) else repr(error)
                if problem != before:
                    logger.log(self.level, "%s error=%s", self.failure, problem)
                pause, before = min(pause * 2, self.longest_pause), problem
            else:
                pause, before = self.pause, ""

"""Starts the rest of the stack in a background thread, while other work goes on."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from spark_jobs.settings import Settings
from spark_jobs.terminal.steps import Note

if TYPE_CHECKING:
    from spark_jobs.stack.stack import Started
    from spark_jobs.stack.startup import Progress

POLL_SECONDS = 0.2


class BackgroundStart(AbstractContextManager["BackgroundStart"]):
    """The start of every part that does not run yet; the end of the block waits for it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="stack")
        self._future: Future[Started] | None = None
        self._phases: dict[str, Progress] = {}

    def start(self) -> Future[Started]:
        """Begin, unless it has begun."""
        from spark_jobs.stack.stack import Stack

        if self._future is None:
            self._future = self._pool.submit(Stack(self._settings).up, self._take)
        return self._future

    def finish(self, note: Note) -> Started:
        """Wait until every part is ready.

        Args:
            note: called with the parts that are not.

        Raises:
            LakehouseError: a part does not start.
        """
        future = self.start()
        while not future.done():
            note(self.missing())
            time.sleep(POLL_SECONDS)
        return future.result()

    def missing(self) -> str:
        """The parts that have begun to start and are not ready."""
        from spark_jobs.stack.startup import Phase

        return ", ".join(
            sorted(name for name, news in self._phases.items() if news.phase is not Phase.READY)
        )

    def _take(self, news: Progress) -> None:
        # Replaced, not changed: another thread reads it.
        self._phases = {**self._phases, news.step: news}

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)

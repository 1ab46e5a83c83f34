"""The turns of views in a pass, taken by a few threads.

A view that reads another one of the pass takes its turn after it. A view whose turn lasts longer
than the pass keeps a thread, and is not given another turn meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from spark_jobs.names import Layer, TableName

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(eq=False)
class Turn:
    """One view's turn.

    Attributes:
        take: refreshes the view in a session, if it is due; returns whether it was. It raises
            nothing.
        after: earlier turns of the same pass, of views that it reads.
        begun: whether a thread takes it, or is about to.
        was_due: what ``take`` returned.
        ended: set when it has returned.
    """

    table: TableName
    take: Callable[[SparkSession], bool]
    after: tuple[Turn, ...] = ()
    begun: bool = False
    was_due: bool = False
    ended: Event = field(default_factory=Event)

    def run(self, session: SparkSession) -> None:
        """Take the turn; those before it have ended."""
        try:
            self.was_due = self.take(session)
        finally:
            self.ended.set()


@dataclass
class Turns:
    """The turns that were given and have not ended.

    No thread waits for a turn: a turn is queued when those before it have ended.
    """

    _queue: SimpleQueue[Turn | None] = field(default_factory=SimpleQueue)
    _open: list[Turn] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @property
    def busy(self) -> frozenset[TableName]:
        """The views whose turn has not ended."""
        with self._lock:
            return frozenset(turn.table for turn in self._open if not turn.ended.is_set())

    def give(self, turns: Sequence[Turn]) -> None:
        """Have the threads take turns."""
        with self._lock:
            self._open += turns
            self._queue_ready()

    def _queue_ready(self) -> None:
        self._open = [turn for turn in self._open if not turn.ended.is_set()]
        for turn in self._open:
            if not turn.begun and all(one.ended.is_set() for one in turn.after):
                turn.begun = True
                self._queue.put(turn)

    @contextmanager
    def threads(self, sessions: Sequence[SparkSession], *, stop_seconds: float) -> Iterator[None]:
        """Take turns while the context lasts, with one thread for each session.

        Args:
            sessions: each is used by one thread only.
            stop_seconds: how long to wait for the open turns at the end.
        """
        threads = [
            Thread(target=self._work, args=(one,), name=f"gold-{at}", daemon=True)
            for at, one in enumerate(sessions)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            deadline = time.monotonic() + stop_seconds
            for _ in threads:
                self._queue.put(None)
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self, session: SparkSession) -> None:
        # A scheduler pool of its own: otherwise its jobs would queue behind those of all streams.
        session.sparkContext.setLocalProperty("spark.scheduler.pool", str(Layer.GOLD))
        while (turn := self._queue.get()) is not None:
            turn.run(session)
            with self._lock:
                self._queue_ready()

"""A moment between two batches of a silver table's stream, held while somebody else writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.check.progress import applied_version
from spark_jobs.silver.errors import UnsettledError
from spark_jobs.silver.store.lock import POLL_SECONDS, Guard
from spark_jobs.state.store import ControlStore

# How long a batch may need that is on its way when the table is to stand still.
SETTLED_SECONDS = 60.0


@dataclass(frozen=True)
class PausedStream:
    """Lets a silver table stand still.

    Attributes:
        live: applies the stream's batches.
        store: holds the counts of the batches.
        checkpoint: of the table's stream.
        guard: keeps other writers of the table out.
        patience: seconds to wait for a batch that is on its way.
    """

    live: BatchApplier
    store: ControlStore
    checkpoint: str
    guard: Guard
    patience: float = SETTLED_SECONDS

    @contextmanager
    def between_batches(self) -> Iterator[int]:
        """Hold the table's guard between two batches; yields the version of bronze that it holds.

        Raises:
            UnsettledError: there is no such moment.
        """
        deadline = time.monotonic() + self.patience
        while True:
            with self.guard():
                version = applied_version(
                    self.live.tables,
                    self.checkpoint,
                    app_id=self.live.app,
                    recorded=self._recorded,
                )
                if version is not None:
                    yield version
                    return
            if time.monotonic() > deadline:
                raise UnsettledError(self.live.entry.name)
            time.sleep(POLL_SECONDS)

    def _recorded(self, batch_id: int) -> bool:
        name, epoch = self.live.entry.name, self.live.epoch
        return self.store.silver_batch_recorded(name, epoch=epoch, batch_id=batch_id)

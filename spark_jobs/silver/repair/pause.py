"""Pauses a silver table's stream between two batches, while another process writes the table."""

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

# How long to wait for a running batch to finish.
SETTLED_SECONDS = 60.0


@dataclass(frozen=True)
class PausedStream:
    """Pauses the stream of a silver table.

    Attributes:
        live: applies the stream's batches.
        store: has the counts of the batches.
        checkpoint: location of the stream's checkpoint.
        guard: keeps other writers of the table out.
        patience: seconds to wait for a running batch.
    """

    live: BatchApplier
    store: ControlStore
    checkpoint: str
    guard: Guard
    patience: float = SETTLED_SECONDS

    @contextmanager
    def between_batches(self) -> Iterator[int]:
        """Hold the table's guard between two batches; yields the bronze version it has applied.

        Raises:
            UnsettledError: no such moment was found.
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

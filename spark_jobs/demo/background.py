"""Runs a load in a background thread."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Event

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.demo.load import LoadOrder, run_load
from spark_jobs.demo.operations import Operation
from spark_jobs.demo.tally import Tally


class BackgroundLoad(AbstractContextManager["BackgroundLoad"]):
    """A load run in its own thread; the end of the block stops it."""

    def __init__(self, order: LoadOrder, *, shop_dsn: str, kafka: KafkaAccess) -> None:
        self.order = order
        self.done = 0
        self._shop_dsn = shop_dsn
        self._kafka = kafka
        self._stop = Event()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load")
        self._future: Future[Tally] | None = None

    def start(self) -> Future[Tally]:
        """Start the run, unless it has already been started."""
        if self._future is None:
            self._future = self._pool.submit(
                run_load,
                self.order,
                shop_dsn=self._shop_dsn,
                kafka=self._kafka,
                progress=self._count,
                stop=self._stop,
            )
        return self._future

    @property
    def running(self) -> bool:
        """Whether the run has started and not ended."""
        return self._future is not None and not self._future.done()

    def stop(self) -> None:
        """Stop the run early; everything that was sent is counted."""
        self._stop.set()

    def finish(self) -> Tally:
        """Wait for the end and return the counts.

        Raises:
            ShopUnreachableError: the connection to the database was lost.
            RecordsNotDeliveredError: Kafka did not acknowledge everything.
        """
        return self.start().result()

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._pool.shutdown(wait=True)

    def _count(self, operation: Operation) -> None:
        self.done += operation.action.weight

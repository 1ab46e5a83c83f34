"""Runs the deliveries of a project in parallel, and reports on them.

A sink whose system is down is retried after growing pauses, without affecting other sinks or
streams. Reports are rows of the progress table whose query starts with ``sink.``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from spark_jobs.errors import LakehouseError
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.sinks.delivery import Delivered, Delivery
from spark_jobs.sinks.errors import SinkMovedError, SinkRefusedError
from spark_jobs.sinks.target import Addresses, Watermark
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.progress import StreamProgress, StreamState, sink_query
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.lake import Lake, TableLocations, lock_directory
from spark_jobs.storage.reader import Session

logger = logging.getLogger(__name__)

# Well below the time after which a silent query counts as down.
REPORT_SECONDS = 15.0
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0
STOP_SECONDS = 15.0


def deliveries(
    settings: Settings, manifest: Manifest, addresses: Callable[[], Addresses], *, spark: Session
) -> dict[str, Delivery]:
    """The delivery of each sink of a project, by the sink's name."""
    locations = TableLocations(Lake(settings.lake), manifest)
    locks = lock_directory(settings.lake, settings.state)
    return {
        name: Delivery(sink, locations.of(sink.table_name), addresses, locks, spark)
        for name, sink in manifest.sinks.items()
    }


def progress_of(name: str, done: Delivered) -> StreamProgress:
    """The progress report of a sink."""
    now = utc_now()
    return StreamProgress(
        query=sink_query(name),
        batch_id=done.watermark.version,
        records=done.changes,
        at=now,
        heartbeat_at=now,
    )


@dataclass
class SinkRunner:
    """One thread per sink, from ``start`` to ``stop``.

    Attributes:
        trigger_seconds: how often each sink checks its table.
    """

    work: Mapping[str, Delivery]
    store: ControlStore
    trigger_seconds: float
    _running: dict[str, _Running] = field(default_factory=dict)

    def start(self) -> None:
        """Start all sinks."""
        self.follow(self.work)

    def follow(self, work: Mapping[str, Delivery]) -> None:
        """Deliver these, by the sink's name, from now on; unchanged sinks are not interrupted."""
        running = self._running
        gone = [
            name
            for name, one in running.items()
            if name not in work or not _same_delivery(one.delivery, work[name])
        ]
        self._end(gone)
        for name in gone:
            del running[name]
            if name not in work:
                self.store.forget_query(sink_query(name))
        self.work = work
        for name in work.keys() - running.keys():
            running[name] = self._begin(name, work[name])

    def stop(self) -> None:
        """Stop each sink between two steps; one that takes too long ends with the process."""
        self._end(list(self._running))

    def _begin(self, name: str, delivery: Delivery) -> _Running:
        stopping = threading.Event()
        thread = threading.Thread(
            target=_Worker(name, delivery, self.store, stopping, self.trigger_seconds).run,
            name=f"sink-{name}",
            # A system that does not answer must not prevent the application's exit.
            daemon=True,
        )
        thread.start()
        return _Running(delivery, stopping, thread)

    def _end(self, names: Sequence[str]) -> None:
        for name in names:
            self._running[name].stopping.set()
        deadline = time.monotonic() + STOP_SECONDS
        for name in names:
            self._running[name].thread.join(max(0.0, deadline - time.monotonic()))


@dataclass(frozen=True)
class _Running:
    delivery: Delivery
    stopping: threading.Event
    thread: threading.Thread


def _same_delivery(one: Delivery, other: Delivery) -> bool:
    """Whether two deliveries are the same; the declaring file does not matter."""
    return one.sink.model_copy(update={"file": ""}) == other.sink.model_copy(update={"file": ""})


@dataclass
class _Worker:
    name: str
    delivery: Delivery
    store: ControlStore
    stopping: threading.Event
    trigger_seconds: float
    failures: int = 0
    state: StreamState = StreamState.STARTING
    error: str | None = None
    reported: float = 0.0
    mark: Watermark | None = None

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self.stopping.wait(self._turn())
            ended = StreamState.STOPPED if self.error is None else self.state
            self._report(ended, self.error, None)
        finally:
            self.delivery.close()

    def _turn(self) -> float:
        """Deliver once; returns the pause until the next time, in seconds."""
        try:
            done = self.delivery.step()
        except (TableLockedError, SinkMovedError):
            # It is being rebuilt or verified.
            self._report(self.state, self.error, None)
            return self.trigger_seconds
        except Exception as error:  # noqa: BLE001 - whatever stops a sink is reported and retried
            return self._failed(error)
        self.failures = 0
        self._report(StreamState.RUNNING, None, done)
        return 0.0 if done.behind else self.trigger_seconds

    def _failed(self, error: Exception) -> float:
        self.failures += 1
        pause = min(FIRST_PAUSE_SECONDS * 2.0**self.failures, LONGEST_PAUSE_SECONDS)
        if isinstance(error, SinkRefusedError):
            state, pause = StreamState.REFUSED, LONGEST_PAUSE_SECONDS
        elif isinstance(error, LakehouseError):
            state = StreamState.WAITING
        else:
            state = StreamState.FAILED
        told = error.render() if isinstance(error, LakehouseError) else repr(error)
        if told != self.error:
            logger.warning("sink stopped name=%s state=%s error=%s", self.name, state, told)
        self._report(state, told, None)
        return pause

    def _report(self, state: StreamState, error: str | None, done: Delivered | None) -> None:
        moved = done is not None and done.watermark != self.mark
        same = (state, error) == (self.state, self.error)
        if same and not moved and time.monotonic() - self.reported < REPORT_SECONDS:
            return
        if self.state is not state and state is StreamState.RUNNING:
            logger.info("sink delivers name=%s", self.name)
        self.state, self.error, self.reported = state, error, time.monotonic()
        self.mark = done.watermark if done is not None else self.mark
        now, query = utc_now(), sink_query(self.name)
        try:
            if done is None or not moved:
                self.store.record_heartbeat(query, at=now, state=state, error=error)
            else:
                self.store.record_progress(progress_of(self.name, done))
        except Exception as problem:  # noqa: BLE001 - a sink goes on where a report is lost
            logger.warning("sink not reported name=%s error=%s", self.name, problem)

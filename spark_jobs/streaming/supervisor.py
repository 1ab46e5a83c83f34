"""Keeps streaming queries running in one driver: starts, restarts, reports and stops them.

It does not know what the queries do. A failed query is restarted after a growing pause; a refused
one is reported as refused and retried slowly; the others continue.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from spark_jobs.errors import LakehouseError
from spark_jobs.state.progress import Heartbeat, StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.streaming.progress import read_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger(__name__)

BEAT_SECONDS = 3.0
WATCH_SECONDS = 15.0
WAIT_SECONDS = 3.0
REFUSED_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 60.0
STOP_SECONDS = 10.0
# A start mostly waits for one task at a time, so a few overlap well.
STARTS_AT_ONCE = 4
REPORT_SECONDS = 1.0
# If every query has failed this often in a row, restart the driver.
HOPELESS_FAILURES = 5


class Flow(Protocol):
    """A query that can be started repeatedly."""

    @property
    def name(self) -> str: ...
    @property
    def definition(self) -> str: ...

    def create_tables(self, spark: SparkSession) -> None:
        """Create the tables that the query writes, unless they exist."""

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start the query; raises a ``LakehouseError`` if it must not run as it is."""
        ...

    def diagnose(self, error: Exception) -> LakehouseError | None:
        """The error behind a failure of the query; None: a restart may help."""

    def watch(self, ids: dict[str, str]) -> LakehouseError | None:
        """Why the running query must end; ``ids`` has the current id of each topic."""


@dataclass(frozen=True)
class Declared:
    """The flows that should run, and the number of their deployment."""

    number: int | None
    flows: Sequence[Flow]


@dataclass
class _Slot:
    flow: Flow
    number: int | None = None
    # Whether its tables may not exist yet.
    fresh: bool = False
    query: StreamingQuery | None = None
    state: StreamState = StreamState.STARTING
    error: str | None = None
    failures: int = 0
    next_try: float = 0.0
    last: StreamProgress | None = None


@dataclass
class Supervisor:
    """Runs flows until it is stopped.

    Attributes:
        refused: class of errors that only an operator can resolve.
        topic_ids: returns the ids of all topics; None if no flow needs them.
        beat: called in every round, for other work of this driver.
        starting: called every second while queries start.
        fresh: names of flows whose tables may not exist yet; others have theirs.
        number: number of the flows' deployment; None if they follow none.
        declared: returns the flows that should run if they changed, else None.
    """

    spark: SparkSession
    store: ControlStore
    flows: Sequence[Flow]
    refused: type[LakehouseError]
    topic_ids: Callable[[], dict[str, str]] | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    beat: Callable[[], None] | None = None
    starting: Callable[[], None] | None = None
    fresh: Collection[str] = ()
    number: int | None = None
    declared: Callable[[], Declared | None] | None = None
    # The error for which states are not recorded.
    _untold: str | None = None

    def run(self) -> bool:
        """Run until ``stopping`` is set; False if no query can be kept running."""
        slots = [_Slot(flow, self.number, flow.name in self.fresh) for flow in self.flows]
        watched = time.monotonic()
        try:
            # Replace the states that an earlier run reported.
            self._tell([_report(slot) for slot in slots])
            while not self.stopping.is_set():
                self._take_up(slots)
                self._tend(slots)
                self._tell([_report(slot) for slot in slots], self.beat)
                if time.monotonic() - watched > WATCH_SECONDS:
                    self._watch(slots)
                    watched = time.monotonic()
                if slots and all(slot.failures >= HOPELESS_FAILURES for slot in slots):
                    logger.error("no query runs queries=%d", len(slots))
                    return False
                self.stopping.wait(BEAT_SECONDS)
        finally:
            self._stop(slots)
        return True

    def _take_up(self, slots: list[_Slot]) -> None:
        """Start, restart and stop what a new deployment changes; the other queries continue."""
        try:
            found = self.declared() if self.declared is not None else None
        except Exception as error:  # noqa: BLE001 - what runs goes on until the next round
            logger.warning("deployment not read error=%s", error)
            return
        if found is None:
            return
        wanted = {flow.name: flow for flow in found.flows}
        gone = [slot for slot in slots if slot.flow.name not in wanted]
        changed = [
            slot
            for slot in slots
            if slot not in gone and slot.flow.definition != wanted[slot.flow.name].definition
        ]
        _drain([*gone, *changed])
        for slot in gone:
            slots.remove(slot)
            self.store.forget_query(slot.flow.name)
            logger.info("query removed name=%s", slot.flow.name)
        for slot in changed:
            slots[slots.index(slot)] = _Slot(wanted[slot.flow.name], fresh=True)
            logger.info("query declared again name=%s", slot.flow.name)
        known = {slot.flow.name for slot in slots}
        slots += [_Slot(flow, fresh=True) for name, flow in wanted.items() if name not in known]
        for slot in slots:
            slot.number = found.number

    def _tend(self, slots: Sequence[_Slot]) -> None:
        """Take note of queries that ended, and start those that are due, several at a time."""
        for slot in slots:
            if slot.query is not None and not slot.query.isActive:
                error = slot.query.exception() or RuntimeError("query ended unexpectedly")
                slot.query = None
                self._failed(slot, _diagnosed(slot.flow, error))
        now = time.monotonic()
        due = [slot for slot in slots if slot.query is None and now >= slot.next_try]
        if not due:
            return
        with ThreadPoolExecutor(STARTS_AT_ONCE, thread_name_prefix="start") as pool:
            running = {pool.submit(self._start, slot) for slot in due}
            # Starting all queries takes a while; report meanwhile.
            while running:
                _, running = wait(running, timeout=REPORT_SECONDS, return_when=FIRST_COMPLETED)
                self._tell([_report(slot) for slot in slots], self.starting)

    def _start(self, slot: _Slot) -> None:
        if self.stopping.is_set():
            return
        try:
            if slot.fresh:
                slot.flow.create_tables(self.spark)
                slot.fresh = False
            slot.query = slot.flow.start(self.spark)
        except Exception as error:  # noqa: BLE001 - whatever ends a start is reported and retried
            self._failed(slot, error)
            return
        logger.info("query started name=%s", slot.flow.name)
        slot.state, slot.error = StreamState.RUNNING, None

    def _failed(self, slot: _Slot, error: Exception) -> None:
        before, slot.error = slot.error, _error_text(error)
        if isinstance(error, self.refused):
            slot.state, pause = StreamState.REFUSED, REFUSED_SECONDS
        elif isinstance(error, LakehouseError):
            slot.state, pause = StreamState.WAITING, WAIT_SECONDS
        else:
            slot.failures += 1
            slot.state = StreamState.FAILED
            pause = min(2.0**slot.failures, LONGEST_PAUSE_SECONDS)
        slot.next_try = time.monotonic() + pause
        if slot.error != before:
            name = slot.flow.name
            logger.warning("query stopped name=%s state=%s error=%s", name, slot.state, slot.error)

    def _watch(self, slots: Sequence[_Slot]) -> None:
        if self.topic_ids is None:
            return
        try:
            ids = self.topic_ids()
        except Exception as error:  # noqa: BLE001 - the queries go on until the next check
            text = error.primary if isinstance(error, LakehouseError) else error
            logger.warning("topics not checked error=%s", text)
            return
        for slot in slots:
            found = _watched(slot.flow, ids) if slot.query is not None else None
            if found is not None:
                _stop_query(slot)
                slot.query = None
                self._failed(slot, found)

    def _stop(self, slots: Sequence[_Slot]) -> None:
        _drain(slots)
        self._tell(
            [
                Heartbeat(
                    query=slot.flow.name,
                    at=utc_now(),
                    state=StreamState.STOPPED if slot.error is None else slot.state,
                    error=slot.error,
                    deployment=slot.number,
                )
                for slot in slots
            ]
        )

    def _tell(
        self,
        reports: Sequence[StreamProgress | Heartbeat],
        also: Callable[[], None] | None = None,
    ) -> None:
        """Record reports in one transaction; without a control database the queries go on."""
        try:
            self.store.record_reports(reports)
            if also is not None:
                also()
        except Exception as error:  # noqa: BLE001 - the next report may succeed
            if self._untold != str(error):
                logger.warning("states not recorded error=%s", error)
            self._untold = str(error)
        else:
            self._untold = None


def create_tables(flows: Iterable[Flow], spark: SparkSession) -> set[str]:
    """Create the tables of all flows, in their order.

    Returns:
        the names of flows for which this failed, for example because a log is damaged. The
        supervisor tries them again and reports why, so that they do not hold back the others.
    """
    failed = set()
    for flow in flows:
        try:
            flow.create_tables(spark)
        except Exception as error:  # noqa: BLE001 - the flow's start reports it
            logger.warning("tables not created name=%s error=%s", flow.name, _error_text(error))
            failed.add(flow.name)
    return failed


def _drain(slots: Sequence[_Slot]) -> None:
    """Stop each query between two batches, or during one if it takes too long."""
    deadline = time.monotonic() + STOP_SECONDS
    waiting = [slot for slot in slots if slot.query is not None]
    while waiting:
        late = time.monotonic() > deadline
        for slot in list(waiting):
            if slot.query is None or late or not slot.query.status["isTriggerActive"]:
                _stop_query(slot)
                waiting.remove(slot)
        time.sleep(0.05)


def _report(slot: _Slot) -> StreamProgress | Heartbeat:
    """A query's state, with its last batch if it is running and has finished one."""
    last = slot.query.lastProgress if slot.query is not None else None
    seen = read_progress(slot.flow.name, _as_dict(last)) if last else None
    if seen is not None and (slot.last is None or seen.batch_id != slot.last.batch_id):
        slot.failures = 0
        slot.last = seen
    now = utc_now()
    if slot.last is None or slot.query is None:
        return Heartbeat(
            query=slot.flow.name,
            at=now,
            state=slot.state,
            error=slot.error,
            deployment=slot.number,
        )
    return replace(slot.last, heartbeat_at=now, state=slot.state, deployment=slot.number)


def _diagnosed(flow: Flow, error: Exception) -> Exception:
    try:
        return flow.diagnose(error) or error
    except Exception as unclear:  # noqa: BLE001 - the query's own error is what is known then
        logger.warning("query not diagnosed name=%s error=%s", flow.name, unclear)
        return error


def _watched(flow: Flow, ids: dict[str, str]) -> LakehouseError | None:
    try:
        return flow.watch(ids)
    except Exception as unclear:  # noqa: BLE001 - the query goes on until the next check
        logger.warning("topic not checked name=%s error=%s", flow.name, unclear)
        return None


def _stop_query(slot: _Slot) -> None:
    try:
        if slot.query is not None:
            slot.query.stop()
    except Exception as error:  # noqa: BLE001 - the others must be stopped too
        logger.warning("query did not stop name=%s error=%s", slot.flow.name, error)


def _error_text(error: Exception) -> str:
    return error.render() if isinstance(error, LakehouseError) else str(error)


def _as_dict(progress: Any) -> dict[str, Any]:
    found: dict[str, Any] = progress if isinstance(progress, dict) else progress.jsonValue
    return found

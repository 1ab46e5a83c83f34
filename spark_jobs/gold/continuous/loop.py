"""Refreshes continuous gold views as soon as their inputs change.

One thread of the streaming application polls the Delta logs of the inputs and runs the usual
refresh steps. While nothing changes it starts no Spark job. A view that fails does not stop the
others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.definitions.vocabulary import Consistency, RefreshPolicy
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.compute.pinned import first_lines
from spark_jobs.gold.continuous.view import FollowedView, Versions
from spark_jobs.gold.refresh import ledger
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.gold.refresh.transactional import transactional_pins
from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer, TableName, TableVersion
from spark_jobs.quality.errors import GateBlockedError
from spark_jobs.settings import Settings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.progress import Heartbeat, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.errors import LogUnreadableError
from spark_jobs.storage.watch import LogWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
STOP_SECONDS = 30.0


class _Stopped(Exception):  # noqa: N818 - an order, not an error
    """The application stops; the open attempt is resumed later."""


@dataclass
class ContinuousGold:
    """Keeps the continuous views of a project up to date.

    Attributes:
        manifest: gives the current manifest; a new object after each recompilation.
        stopping: set this event to stop the thread.
    """

    settings: Settings
    store: ControlStore
    manifest: Callable[[], Manifest]
    stopping: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = time.monotonic
    views: list[FollowedView] = field(default_factory=list, init=False)
    # Reporting and refreshing happen in different threads.
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _begun: threading.Event = field(default_factory=threading.Event, init=False)
    _watch: LogWatch = field(default_factory=LogWatch, init=False)
    _refresher: Refresher | None = field(default=None, init=False)

    def report_starting(self) -> None:
        """Report, until the first ``report``, that the views of an earlier run are starting.

        Without it they would count as stopped until the last stream has started.
        """
        if self._begun.is_set():
            return
        self.store.record_reports(
            Heartbeat(query=row.query, at=utc_now(), state=StreamState.STARTING)
            for row in self.store.progress()
            if row.query.startswith(f"{Layer.GOLD}.")
        )

    @contextmanager
    def following(self, spark: SparkSession) -> Iterator[None]:
        """Refresh in a thread while the context lasts, starting with the first ``report``."""
        thread = threading.Thread(target=self._run, args=(spark,), name="gold", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            self._begun.set()
            thread.join(STOP_SECONDS)
            for view in self.views:
                if view.state in {StreamState.STARTING, StreamState.RUNNING, StreamState.WAITING}:
                    view.state = StreamState.STOPPED
            self.report()

    def report(self) -> None:
        """Record the progress of each view. The first call starts the refreshes.

        It comes when all streams have started: earlier, refreshes would compete with them for the
        cores and find little to read.
        """
        self._begun.set()
        with self._lock:
            self.store.record_reports([view.progress() for view in self.views])

    def follow_once(self, spark: SparkSession) -> int:
        """Refresh each view that is due; returns the number of views that were due.

        A view comes after the views that it reads. All views of a pass read the same versions: of
        other tables, those that show whole transactions when the pass begins; of continuous views,
        those that this pass has published. Views with ``consistency: newest`` share the newest
        versions instead.
        """
        refresher = self._current(spark)
        loose = dict(self._versions(refresher))
        whole = transactional_pins(refresher.context, loose)
        looked_at = 0
        for view in self.views:
            if self.stopping.is_set():
                break
            pins = loose if view.entry.consistency is Consistency.NEWEST else whole
            looked_at += self._follow(refresher, view, pins)
            if view.table in pins:
                whole[view.table] = loose[view.table] = pins[view.table]
        return looked_at

    def _run(self, spark: SparkSession) -> None:
        session = spark.newSession()
        # A scheduler pool of its own: otherwise its jobs would queue behind those of all streams.
        spark.sparkContext.setLocalProperty("spark.scheduler.pool", str(Layer.GOLD))
        problem = None
        self._begun.wait()
        while not self.stopping.wait(LOOK_SECONDS):
            began = time.monotonic()
            try:
                looked_at, problem = self.follow_once(session), None
            except Exception as error:  # noqa: BLE001 - the next pass may reach what this did not
                if str(error) != problem:
                    problem = str(error)
                    logger.warning("no pass over continuous views error=%s", problem)
                looked_at = 1
            if looked_at:
                pace = self.settings.streams.gold_trigger_seconds
                self.stopping.wait(max(0.0, began + pace - time.monotonic()))

    def _current(self, spark: SparkSession) -> Refresher:
        """The refresher of the current manifest; state of views that changed is reset."""
        manifest = self.manifest()
        if self._refresher is not None and manifest is self._refresher.context.manifest:
            return self._refresher
        known = {view.entry.name: view for view in self.views}
        followed = [
            entry for entry in manifest.gold.values() if entry.refresh is RefreshPolicy.CONTINUOUS
        ]
        views = [
            known[entry.name]
            if entry.name in known and known[entry.name].entry == entry
            else FollowedView(entry, self.settings.gold.clock_seconds)
            for entry in sorted(followed, key=lambda entry: (entry.tier, entry.name))
        ]
        ours = {str(view.table) for view in views}
        with self._lock:
            self.views = views
            for row in self.store.progress():
                if row.query.startswith(f"{Layer.GOLD}.") and row.query not in ours:
                    self.store.forget_query(row.query)
        logger.info("continuous views following=%s", ", ".join(sorted(ours)) or "none")
        self._refresher = Refresher(
            self.settings, manifest, self.store, session_factory=lambda _: spark
        )
        return self._refresher

    def _versions(self, refresher: Refresher) -> Iterator[tuple[TableName, TableVersion]]:
        """The newest versions of the input tables that no continuous view writes."""
        ours = {view.table for view in self.views}
        for table in {table for view in self.views for table in view.looks_at} - ours:
            # An unreadable table must not stop the views that do not read it.
            with suppress(LogUnreadableError, OSError):
                version = self._newest(refresher, table)
                if version is not None:
                    yield table, version

    def _newest(self, refresher: Refresher, table: TableName) -> TableVersion | None:
        return self._watch.version(refresher.context.locations.of(table))

    def _follow(
        self, refresher: Refresher, view: FollowedView, pins: dict[TableName, TableVersion]
    ) -> bool:
        """Refresh one view if it is due; returns whether it was."""
        now = self.clock()
        try:
            newest = {
                table: pins.get(table) or self._newest(refresher, table) for table in view.looks_at
            }
            if not view.due(newest, now=now):
                return False
            self._refresh(refresher, view, pins, newest=newest)
        except _Stopped:
            return True
        except Exception as error:  # noqa: BLE001 - the other views go on
            if self.stopping.is_set():
                return True
            before, text = view.error, _error_text(error)
            view.failed(text, now=self.clock())
            if text != before:
                logger.warning("view not refreshed name=%s error=%s", view.table, text)
        return True

    def _refresh(
        self,
        refresher: Refresher,
        view: FollowedView,
        pins: dict[TableName, TableVersion],
        *,
        newest: Versions,
    ) -> None:
        name, started = view.entry.name, self.clock()
        if view.failures:
            ledger.keep_newest_unpublished(refresher.context, name)
        # The first view that reads a table pins it for the rest of the pass.
        plan = refresher.follow(name, pin=pins.setdefault)
        if plan.skips:
            view.skipped(plan, newest, now=started)
            return
        try:
            refresher.carry_out(plan, on_step=self._may_go_on)
        except GateBlockedError as blocked:
            view.blocked(plan, newest[view.table], blocked.render(), now=started)
            logger.warning("view blocked name=%s", view.table)
            return
        outcome = refresher.outcome(plan, seconds=self.clock() - started)
        own = None
        if outcome.status is AttemptStatus.PUBLISHED and outcome.version is not None:
            found = self._newest(refresher, view.table)
            own = None if found is None else TableVersion(found.table_id, outcome.version)
        view.refreshed(outcome, own, now=started)
        if own is not None:
            pins[view.table] = own
            at, seconds = f"{view.table}@{own.version}", outcome.seconds
            logger.info("view refreshed name=%s seconds=%.1f %s", at, seconds, plan.line)

    def _may_go_on(self, step: str) -> None:
        del step
        if self.stopping.is_set():
            raise _Stopped


def _error_text(error: Exception) -> str:
    return error.render() if isinstance(error, LakehouseError) else first_lines(error)

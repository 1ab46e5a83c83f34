"""Refreshes continuous gold views as soon as their inputs change.

One thread of the streaming application polls the Delta logs of the inputs, and a few threads run
the usual refresh steps of views that do not read each other. While nothing changes they start no
Spark job. A view that fails, or takes long, does not stop the others.
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
from spark_jobs.gold.base.errors import BaseMovedError
from spark_jobs.gold.base.publications import newest_intruder
from spark_jobs.gold.compute.pinned import first_lines
from spark_jobs.gold.continuous.turns import Turn, Turns
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

# The versions that the views of a pass read; a table that is missing is added by the first view.
Pins = dict[TableName, TableVersion]

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
    _turns: Turns = field(default_factory=Turns, init=False)
    # By the id of the session.
    _refreshers: dict[int, Refresher] = field(default_factory=dict, init=False)
    _compiled: Manifest | None = field(default=None, init=False)

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
        """Refresh each view that is due, in this thread; returns the number of views that were due.

        A view comes after the views that it reads. All views of a pass read the same versions: of
        other tables, those that show whole transactions when the pass begins; of continuous views,
        those that this pass has published. Views with ``consistency: newest`` share the newest
        versions instead.
        """
        turns = self._pass(spark)
        for turn in turns:
            turn.run(spark)
        return sum(turn.was_due for turn in turns)

    def _run(self, spark: SparkSession) -> None:
        sessions = [spark.newSession() for _ in range(self.settings.streams.gold_parallel)]
        problem = None
        self._begun.wait()
        with self._turns.threads(sessions, stop_seconds=STOP_SECONDS):
            while not self.stopping.wait(LOOK_SECONDS):
                ends = time.monotonic() + self.settings.streams.gold_trigger_seconds
                try:
                    turns, problem = self._pass(sessions[0]), None
                except Exception as error:  # noqa: BLE001 - the next pass may reach what this did not
                    if str(error) != problem:
                        problem = str(error)
                        logger.warning("no pass over continuous views error=%s", problem)
                    self._wait_until(ends)
                    continue
                self._turns.give(turns)
                for turn in turns:
                    turn.ended.wait(max(0.0, ends - time.monotonic()))
                if any(turn.was_due or not turn.ended.is_set() for turn in turns):
                    self._wait_until(ends)

    def _wait_until(self, end: float) -> None:
        self.stopping.wait(max(0.0, end - time.monotonic()))

    def _pass(self, spark: SparkSession) -> list[Turn]:
        """The turns of the views that may be due, each after those that it reads."""
        manifest = self._current()
        refresher = self._refresher(manifest, spark)
        loose = dict(self._versions(refresher))
        whole = transactional_pins(refresher.context, loose)
        turns: dict[TableName, Turn] = {}
        # A view that reads one whose turn has not ended, or was left out, waits for the next pass.
        left_out = set(self._turns.busy)
        for view in self.views:
            if left_out.intersection(view.looks_at):
                left_out.add(view.table)
                continue
            pins = loose if view.entry.consistency is Consistency.NEWEST else whole
            after = tuple(turns[table] for table in view.looks_at if table in turns)
            if after or self._may_be_due(refresher, view, pins):
                take = self._taking(manifest, view, pins, shared=(loose, whole))
                turns[view.table] = Turn(view.table, take, after)
        return list(turns.values())

    def _taking(
        self, manifest: Manifest, view: FollowedView, pins: Pins, *, shared: tuple[Pins, Pins]
    ) -> Callable[[SparkSession], bool]:
        def take(session: SparkSession) -> bool:
            if self.stopping.is_set():
                return False
            due = self._follow(manifest, session, view, pins)
            if view.table in pins:
                for versions in shared:
                    versions[view.table] = pins[view.table]
            return due

        return take

    def _refresher(self, manifest: Manifest, session: SparkSession) -> Refresher:
        """The session's refresher; each session is used by one thread."""
        known = self._refreshers.get(id(session))
        if known is None or known.context.manifest is not manifest:
            known = Refresher(
                self.settings, manifest, self.store, session_factory=lambda _: session
            )
            self._refreshers[id(session)] = known
        return known

    def _current(self) -> Manifest:
        """The current manifest; state of views that changed is reset."""
        manifest = self.manifest()
        if manifest is self._compiled:
            return manifest
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
        self._compiled = manifest
        return manifest

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

    def _may_be_due(self, refresher: Refresher, view: FollowedView, pins: Pins) -> bool:
        try:
            return view.due(self._seen_by(refresher, view, pins), now=self.clock())
        except Exception:  # noqa: BLE001 - its turn reports it
            return True

    def _seen_by(self, refresher: Refresher, view: FollowedView, pins: Pins) -> Versions:
        return {table: pins.get(table) or self._newest(refresher, table) for table in view.looks_at}

    def _follow(
        self, manifest: Manifest, session: SparkSession, view: FollowedView, pins: Pins
    ) -> bool:
        """Refresh one view if it is due; returns whether it was."""
        now = self.clock()
        try:
            refresher = self._refresher(manifest, session)
            newest = self._seen_by(refresher, view, pins)
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
        pins: Pins,
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
        except BaseMovedError:
            if not view.overtaken():
                raise
            refresher.supersede(plan.attempt_id)
            return
        outcome = refresher.outcome(plan, seconds=self.clock() - started)
        own = None
        if outcome.status is AttemptStatus.PUBLISHED and outcome.version is not None:
            found = self._newest(refresher, view.table)
            own = None if found is None else TableVersion(found.table_id, outcome.version)
        view.refreshed(outcome, own, now=started)
        if newest_intruder(refresher.context.published_at(name)) is not None:
            # Another writer's rows came below this publication: correct them in the next pass.
            view.seen = None
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

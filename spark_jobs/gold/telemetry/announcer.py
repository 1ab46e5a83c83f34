"""Emits an Airflow asset event for each publication that changed rows, and for verdicts.

The published tables' logs are the outbox: events are emitted in the order of commits, and a cursor
in the control database records how far each view has come. Delivery is at least once; Airflow
stores the attempt's name with an event, so one that it has is not emitted twice. Airflow tasks emit
the events of their own publications.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from spark_jobs.background import BackgroundLoop
from spark_jobs.errors import LakehouseError
from spark_jobs.gold.base.context import GoldContext, gold_table
from spark_jobs.gold.base.publications import Publication, publications
from spark_jobs.gold.telemetry.asset_events import event_of_publication
from spark_jobs.gold.telemetry.event_sender import Events, EventSender
from spark_jobs.gold.telemetry.verdict_events import VerdictOutbox
from spark_jobs.names import TableVersion
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
# An Airflow task emits its own event when it ends; after this time it counts as dead.
TASK_ENDS = timedelta(minutes=15)


@dataclass
class Announcer:
    """Emits the events of new publications and verdicts; ``announcing`` calls ``look``.

    Attributes:
        context: called in each round, because deployments change the views.
        sender: the connection to Airflow.
        stopping: set this event to end a round after the current view.
    """

    context: Callable[[], GoldContext]
    sender: EventSender
    now: Callable[[], datetime] = utc_now
    stopping: threading.Event = field(default_factory=threading.Event)
    _verdicts: VerdictOutbox = field(init=False)

    def __post_init__(self) -> None:
        self._verdicts = VerdictOutbox(self.sender)

    def look(self) -> int:
        """Emit all new events; returns their number.

        Raises:
            AirflowAwayError: Airflow does not answer; the events wait.
        """
        try:
            return self._look()
        except LakehouseError:
            self.sender.close()
            raise

    def _look(self) -> int:
        context = self.context()
        known = context.store.asset_cursors()
        emitted = 0
        for view in sorted(context.manifest.gold):
            if self.stopping.is_set():
                return emitted
            found = log.table_version(context.published_at(view))
            cursor = known.get(view)
            if cursor is None:
                # On the first run existing publications get no event; those of views that are added
                # later do.
                cursor = self._first(view, found if not known else None)
                context.store.set_asset_cursor(cursor)
            if found is not None and (found.table_id, found.version) != (
                cursor.table_id,
                cursor.version,
            ):
                emitted += self._emit_new(context, cursor, found)
        return emitted + self._verdicts.deliver(context, known, now=self.now())

    def _first(self, view: str, found: TableVersion | None) -> AssetCursor:
        if found is None:
            return AssetCursor(view, "", -1, self.now())
        return AssetCursor(view, found.table_id, found.version, self.now())

    def _emit_new(self, context: GoldContext, cursor: AssetCursor, found: TableVersion) -> int:
        after = cursor.version if cursor.table_id == found.table_id else -1
        location = context.published_at(cursor.view)
        new = list(takewhile(lambda one: one.version > after, publications(location)))
        reached, emitted = replace(cursor, table_id=found.table_id, version=after), 0
        for one in reversed(new):
            event = event_of_publication(context, one)
            if event is not None:
                try:
                    problem = self._emit(one, event)
                except LakehouseError as error:
                    self._waits(context, reached, one, error.primary)
                    raise
                if problem is not None:
                    self._waits(context, reached, one, problem)
                    return emitted
                emitted += 1
            reached = AssetCursor(cursor.view, found.table_id, one.version, self.now())
            context.store.set_asset_cursor(reached)
        # Commits after the last publication are compactions.
        context.store.set_asset_cursor(
            AssetCursor(cursor.view, found.table_id, found.version, self.now())
        )
        return emitted

    def _emit(self, published: Publication, event: dict[str, Any]) -> str | None:
        """Emit an event unless Airflow has it; returns why it has to wait, or None."""
        mark = published.watermark
        asset = str(gold_table(mark.view))
        obstacle = self.sender.obstacle(asset)
        if obstacle is not None:
            return obstacle
        if self.sender.has(asset, mark.attempt):
            return None
        if mark.announced and self.now() - published.at < TASK_ENDS:
            return f"the task of attempt {mark.attempt} has not ended"
        self.sender.emit(asset, event)
        logger.info("asset event view=%s version=%d", mark.view, published.version)
        return None

    def _waits(
        self, context: GoldContext, reached: AssetCursor, one: Publication, why: str
    ) -> None:
        if reached.error != why or reached.waits_since != one.at:
            context.store.set_asset_cursor(replace(reached, error=why, waits_since=one.at))


@contextmanager
def announcing(
    context: Callable[[], GoldContext], airflow: Callable[[], Events | None]
) -> Iterator[None]:
    """Emit asset events in a thread, for the duration of the block.

    Args:
        context: returns the current project.
        airflow: opens a client of Airflow; None: no password is known.
    """
    announcer = Announcer(context, EventSender(airflow))
    loop = BackgroundLoop(
        "asset-events",
        announcer.look,
        "asset events wait",
        pause=PAUSE_SECONDS,
        longest_pause=LONGEST_PAUSE_SECONDS,
        stop_seconds=PAUSE_SECONDS,
        stopping=announcer.stopping,
    )
    try:
        with loop:
            yield
    finally:
        announcer.sender.close()

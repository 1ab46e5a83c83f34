"""Emits an Airflow asset event for each publication that changed rows, and for verdicts.

The published tables' logs are the outbox: events are emitted in the order of commits, and a cursor
in the control database records how far each view has come. Delivery is at least once; Airflow
stores the attempt's name with an event, so one that it has is not emitted twice. Airflow tasks emit
the events of their own publications.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Protocol

from spark_jobs.errors import LakehouseError
from spark_jobs.gold.context import GoldContext, gold_table
from spark_jobs.gold.publications import Publication, publications
from spark_jobs.gold.telemetry.asset_events import event_of_publication
from spark_jobs.gold.telemetry.verdict_events import (
    CURSOR,
    VerdictOutbox,
    quality_asset_name,
    verdict_event,
)
from spark_jobs.names import TableVersion
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.attempts import RefreshAttempt
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0
# An Airflow task emits its own event when it ends; after this time it counts as dead.
TASK_ENDS = timedelta(minutes=15)
# Reasons why events wait that are not failures: nobody could receive them.
ASSET_UNKNOWN = "Airflow has no such asset yet: no DAG names it"
NO_AIRFLOW = "the password of Airflow is not known"


class Events(Protocol):
    """Airflow's REST API for asset events; see ``access.airflow.AssetEvents``."""

    def asset(self, name: str) -> int | None:
        """The id of an asset, or None."""

    def attempts(self, asset: int) -> set[str]:
        """The attempts named by its newest events."""

    def emit(self, asset: int, extra: dict[str, Any]) -> None:
        """Emit an event."""

    def close(self) -> None:
        """Close the connection."""


@dataclass
class Announcer:
    """Polls the published tables and emits events of new publications.

    Attributes:
        context: called in each round, because deployments change the views.
        airflow: opens a client, on first use and after a failure; None: no password of an Airflow
            is known.
    """

    context: Callable[[], GoldContext]
    airflow: Callable[[], Events | None]
    now: Callable[[], datetime] = utc_now
    _client: Events | None = None
    _assets: dict[str, int] = field(default_factory=dict)
    _verdicts: VerdictOutbox = field(default_factory=VerdictOutbox)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="asset-events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current event."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(PAUSE_SECONDS)
        self._forget()

    def look(self) -> int:
        """Emit the events of all new publications; returns their number.

        Raises:
            AirflowAwayError: Airflow does not answer; the events wait.
        """
        context = self.context()
        known = context.store.asset_cursors()
        emitted = 0
        for view in sorted(context.manifest.gold):
            if self._stopping.is_set():
                break
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
        return emitted + self._emit_verdicts(context, known.get(CURSOR))

    def _emit_verdicts(self, context: GoldContext, cursor: AssetCursor | None) -> int:
        emitted = 0
        for attempt in self._verdicts.waiting(context, cursor, now=self.now()):
            try:
                emitted += self._emit_verdict(attempt)
            except LakehouseError:
                self._forget()
                raise
        return emitted

    def _emit_verdict(self, attempt: RefreshAttempt) -> bool:
        """Emit the event of a verdict; False where Airflow has it, or nobody can hear of it."""
        self._client = airflow = self._client or self.airflow()
        if airflow is None:
            return False
        asset = self._asset(airflow, quality_asset_name(attempt.view))
        if asset is None or attempt.attempt_id in airflow.attempts(asset):
            return False
        airflow.emit(asset, verdict_event(attempt))
        return True

    def _asset(self, airflow: Events, name: str) -> int | None:
        asset = self._assets.get(name) or airflow.asset(name)
        if asset is not None:
            self._assets[name] = asset
        return asset

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
                    self._forget()
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
        self._client = airflow = self._client or self.airflow()
        if airflow is None:
            return NO_AIRFLOW
        mark = published.watermark
        asset = self._asset(airflow, str(gold_table(mark.view)))
        if asset is None:
            return ASSET_UNKNOWN
        if mark.attempt in airflow.attempts(asset):
            return None
        if mark.announced and self.now() - published.at < TASK_ENDS:
            return f"the task of attempt {mark.attempt} has not ended"
        airflow.emit(asset, event)
        logger.info("asset event view=%s version=%d", mark.view, published.version)
        return None

    def _waits(
        self, context: GoldContext, reached: AssetCursor, one: Publication, why: str
    ) -> None:
        if reached.error != why or reached.waits_since != one.at:
            context.store.set_asset_cursor(replace(reached, error=why, waits_since=one.at))

    def _forget(self) -> None:
        """Drop the connection and the asset ids: Airflow may assign new ones."""
        if self._client is not None:
            self._client.close()
        self._client = None
        self._assets.clear()

    def _run(self) -> None:
        pause, before = PAUSE_SECONDS, ""
        while not self._stopping.wait(pause):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - events wait, and publications go on
                said = error.primary if isinstance(error, LakehouseError) else repr(error)
                if said != before:
                    logger.warning("asset events wait error=%s", said)
                pause, before = min(pause * 2, LONGEST_PAUSE_SECONDS), said
            else:
                pause, before = PAUSE_SECONDS, ""

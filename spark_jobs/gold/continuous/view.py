"""One continuous view between its refreshes: what it has seen, when it is due, how it stands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from spark_jobs.gold.refresh.steps import Outcome
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.types import JsonObject, utc_now

LONGEST_PAUSE_SECONDS = 60.0
_WAITS = frozenset(
    {
        ReasonCode.INPUT_MISSING,
        ReasonCode.WAITS_FOR_PERSON,
        ReasonCode.WAITS_FOR_TRANSACTION,
    }
)

# The newest version of each table that a view looks at: its inputs, and its own.
Versions = Mapping[TableName, TableVersion | None]


@dataclass
class FollowedView:
    """A view that follows its inputs. Times are seconds of one monotonic clock.

    Attributes:
        clock_seconds: how often it is refreshed where nothing but the clock moves.
        seen: the versions that it is in line with; None where that is not known.
        looked_at: when it was found in line, or brought there.
        failures: refreshes in a row that published nothing they should have.
        next_try: before that it is left alone.
        version: of its own table, -1 before the first.
        rows: rows of its inputs that had changed.
        vector: what it was last in line with, for people.
    """

    entry: GoldEntry
    clock_seconds: float
    seen: Versions | None = None
    looked_at: float = -math.inf
    failures: int = 0
    next_try: float = -math.inf
    state: StreamState = StreamState.STARTING
    error: str | None = None
    version: int = -1
    rows: int = 0
    vector: JsonObject | None = None
    at: datetime = field(default_factory=utc_now)

    @property
    def table(self) -> TableName:
        return self.entry.table_name

    @property
    def looks_at(self) -> tuple[TableName, ...]:
        """Its inputs; and its own table, which others may change or refresh."""
        return (*map(TableName.parse, self.entry.inputs), self.table)

    def due(self, newest: Versions, *, now: float) -> bool:
        """Whether there may be something to do."""
        if now < self.next_try:
            return False
        clock_moved = self.entry.reads_clock and now - self.looked_at >= self.clock_seconds
        return clock_moved or self.seen != newest

    def skipped(self, plan: RefreshPlan, newest: Versions, *, now: float) -> None:
        """Nothing had to be done, or nothing could be."""
        waits = plan.reason.code in _WAITS
        self._in_line(plan, newest[self.table], now=now)
        self.state = StreamState.WAITING if waits else StreamState.RUNNING
        self.error = plan.reason.text if waits else None

    def refreshed(self, outcome: Outcome, own: TableVersion | None, *, now: float) -> None:
        """A refresh came to its end.

        Args:
            outcome: how.
            own: what it published; None where somebody else was faster.
            now: the time.
        """
        self._in_line(outcome.plan, own, now=now)
        self.state, self.error = StreamState.RUNNING, None
        self.at = utc_now()
        estimate = outcome.plan.estimate
        self.rows = 0 if estimate is None else estimate.changed or 0
        if own is None:
            # Somebody else's publication is there; it is looked at next.
            self.seen = None

    def blocked(
        self, plan: RefreshPlan, own: TableVersion | None, error: str, *, now: float
    ) -> None:
        """The gate blocked the result: the same inputs would be blocked again."""
        failures = self.failures
        self._in_line(plan, own, now=now)
        self.state, self.error = StreamState.BLOCKED, error
        self._pause(failures, now=now)

    def failed(self, error: str, *, now: float) -> None:
        """A refresh ended with an error; trying again may help."""
        self.seen = None
        self.state, self.error = StreamState.FAILED, error
        self._pause(self.failures, now=now)

    def progress(self) -> StreamProgress:
        """The row that says how the view stands."""
        return StreamProgress(
            query=str(self.table),
            batch_id=self.version,
            records=self.rows,
            end_offsets=self.vector,
            at=self.at,
            heartbeat_at=utc_now(),
            state=self.state,
            error=self.error,
        )

    def _in_line(self, plan: RefreshPlan, own: TableVersion | None, *, now: float) -> None:
        inputs = {table: plan.vector.get(table) for table in self.looks_at}
        self.seen = {**inputs, self.table: own}
        self.version = self.version if own is None else own.version
        self.vector = plan.vector.as_dict()
        self.looked_at, self.failures, self.next_try = now, 0, -math.inf

    def _pause(self, failures: int, *, now: float) -> None:
        self.failures = failures + 1
        self.next_try = now + min(2.0**self.failures, LONGEST_PAUSE_SECONDS)

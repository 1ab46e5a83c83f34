"""The state of one continuous view between refreshes: versions seen, next try, progress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from spark_jobs.gold.refresh.steps import ROUNDS, Outcome
from spark_jobs.graph.manifest import GoldEntry
from spark_jobs.names import TableName, TableVersion
from spark_jobs.planning.decision import ReasonCode
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.types import JsonObject, utc_now

LONGEST_PAUSE_SECONDS = 60.0
# A commit of the database can be recorded for versions that a view has already seen.
COMMIT_PAUSE_SECONDS = 1.0
# So can a person's decision, and a replay that does not publish in the end.
DECISION_PAUSE_SECONDS = 5.0
_ASKED_AGAIN = {
    ReasonCode.WAITS_FOR_TRANSACTION: COMMIT_PAUSE_SECONDS,
    ReasonCode.INPUT_BEHIND: COMMIT_PAUSE_SECONDS,
    ReasonCode.VIEW_PINNED: DECISION_PAUSE_SECONDS,
    ReasonCode.REPLAY_PUBLISHES: DECISION_PAUSE_SECONDS,
    ReasonCode.WAITS_FOR_PERSON: DECISION_PAUSE_SECONDS,
}
_WAITS = frozenset(
    {
        ReasonCode.INPUT_BEHIND,
        ReasonCode.INPUT_MISSING,
        ReasonCode.WAITS_FOR_PERSON,
        ReasonCode.WAITS_FOR_TRANSACTION,
    }
)

# The newest version of each table that a view watches: its inputs and its own table.
Versions = Mapping[TableName, TableVersion | None]


@dataclass
class FollowedView:
    """A view that follows its inputs. Times are seconds of one monotonic clock.

    Attributes:
        clock_seconds: interval of refreshes of a view over CURRENT_TIMESTAMP whose inputs do not
            change.
        seen: the versions that the view reflects; None if unknown.
        looked_at: when the view was last known to be up to date.
        failures: consecutive refreshes that failed or were blocked.
        rivals: consecutive refreshes that another one overtook.
        next_try: no refresh starts before this time.
        version: version of the view's own table; -1 before the first publication.
        rows: input rows that the last refresh found changed.
        vector: version vector of the last refresh, for people.
    """

    entry: GoldEntry
    clock_seconds: float
    seen: Versions | None = None
    looked_at: float = -math.inf
    failures: int = 0
    rivals: int = 0
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
        """Its inputs, and its own table, which a replay or a command may write."""
        return (*map(TableName.parse, self.entry.inputs), self.table)

    def due(self, newest: Versions, *, now: float) -> bool:
        """Whether a refresh may have something to do."""
        if now < self.next_try:
            return False
        clock_moved = self.entry.reads_clock and now - self.looked_at >= self.clock_seconds
        return clock_moved or self.seen != newest

    def skipped(self, plan: RefreshPlan, newest: Versions, *, now: float) -> None:
        """Record a plan that skips, because nothing changed or an input is missing."""
        waits = plan.reason.code in _WAITS
        self._up_to_date(plan, newest[self.table], now=now)
        if (pause := _ASKED_AGAIN.get(plan.reason.code)) is not None:
            self.seen, self.next_try = None, now + pause
        self.state = StreamState.WAITING if waits else StreamState.RUNNING
        self.error = plan.reason.text if waits else None

    def refreshed(self, outcome: Outcome, own: TableVersion | None, *, now: float) -> None:
        """Record a refresh that ended without an error.

        Args:
            outcome: its result.
            own: the version that it published; None if another process published first.
            now: the time.
        """
        self._up_to_date(outcome.plan, own, now=now)
        self.state, self.error = StreamState.RUNNING, None
        self.at = utc_now()
        estimate = outcome.plan.estimate
        self.rows = 0 if estimate is None else estimate.changed or 0
        if own is None:
            # Another process published: compare again in the next pass.
            self.seen = None

    def overtaken(self) -> bool:
        """Record that another refresh published first: the next pass plans on top of that.

        Returns:
            False if it happens again and again, which is a failure.
        """
        self.seen, self.rivals = None, self.rivals + 1
        return self.rivals < ROUNDS

    def blocked(
        self, plan: RefreshPlan, own: TableVersion | None, error: str, *, now: float
    ) -> None:
        """Record a blocked result: the same inputs would be blocked again."""
        failures = self.failures
        self._up_to_date(plan, own, now=now)
        self.state, self.error = StreamState.BLOCKED, error
        self._pause(failures, now=now)

    def failed(self, error: str, *, now: float) -> None:
        """Record an error; a later try may succeed."""
        self.seen = None
        self.state, self.error = StreamState.FAILED, error
        self._pause(self.failures, now=now)

    def progress(self) -> StreamProgress:
        """The view's row in the progress table."""
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

    def _up_to_date(self, plan: RefreshPlan, own: TableVersion | None, *, now: float) -> None:
        inputs = {table: plan.vector.get(table) for table in self.looks_at}
        self.seen = {**inputs, self.table: own}
        self.version = self.version if own is None else own.version
        self.vector = plan.vector.as_dict()
        self.looked_at, self.failures, self.next_try = now, 0, -math.inf
        self.rivals = 0

    def _pause(self, failures: int, *, now: float) -> None:
        self.failures = failures + 1
        # A power of the number itself is too large for a float after a day of failures.
        self.next_try = now + min(2.0 ** min(self.failures, 10), LONGEST_PAUSE_SECONDS)

"""Which publications and verdicts become asset events in Airflow, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.access.errors import AirflowAwayError
from spark_jobs.definitions.vocabulary import Severity
from spark_jobs.gold.base.context import GoldContext
from spark_jobs.gold.telemetry.announcer import TASK_ENDS, Announcer
from spark_jobs.gold.telemetry.event_sender import ASSET_UNKNOWN, NO_AIRFLOW, EventSender
from spark_jobs.gold.telemetry.verdict_events import CURSOR, OVERLAP, RETRY, verdict_cursor
from spark_jobs.names import TableVersion
from spark_jobs.planning.vector import VersionVector
from spark_jobs.planning.watermark import Watermark
from spark_jobs.quality.verdict import ExpectationResult, Verdict
from spark_jobs.state.asset_cursors import AssetCursor
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.storage import arrow_tables
from tests.unit.gold.attempts import ORDERS

VECTOR = VersionVector({ORDERS: TableVersion("orders", 7)})


@dataclass
class FakeAirflow:
    """Keeps events; ``assets`` are those that a DAG names."""

    assets: dict[str, int] = field(default_factory=lambda: {"gold.spend": 4})
    events: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    away: bool = False
    # Events that can be emitted before it is away.
    accepts: int | None = None

    def asset(self, name: str) -> int | None:
        self._asked()
        return self.assets.get(name)

    def attempts(self, asset: int) -> set[str]:
        self._asked()
        return {event["attempt"] for event in self._of(asset)}

    def emit(self, asset: int, extra: dict[str, Any]) -> None:
        self._asked()
        if self.accepts is not None:
            self.away = self.accepts == 0
            self.accepts -= 1
            self._asked()
        self._of(asset).append(extra)

    def _of(self, asset: int) -> list[dict[str, Any]]:
        assert asset in self.assets.values()
        return self.verdicts if asset == self.assets.get("gold.spend.quality") else self.events

    def close(self) -> None:
        """Nothing is open."""

    def _asked(self) -> None:
        if self.away:
            raise AirflowAwayError("http://127.0.0.1:1", "nobody answers")

    @property
    def emitted(self) -> list[str]:
        return [event["attempt"] for event in self.events]

    @property
    def judged(self) -> list[str]:
        return [event["attempt"] for event in self.verdicts]


@pytest.fixture
def airflow() -> FakeAirflow:
    return FakeAirflow()


@dataclass
class Clock:
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def announcer(context: GoldContext, airflow: FakeAirflow, clock: Clock) -> Announcer:
    found = Announcer(lambda: context, EventSender(lambda: airflow), now=clock)
    found.look()
    return found


@pytest.fixture
def quality(airflow: FakeAirflow) -> None:
    """A DAG names the asset of the view's quality."""
    airflow.assets["gold.spend.quality"] = 5


def publish(
    context: GoldContext, attempt: str, *, changed: bool = True, announced: bool = False
) -> None:
    mark = Watermark(
        view="spend",
        sequence=1,
        epoch=1,
        fingerprint="f",
        rule="full",
        vector=VECTOR,
        tick="t1",
        attempt=attempt,
        clock=datetime.now(UTC),
        changed=changed,
        announced=announced,
    )
    rows = pa.table({"user_id": [1, 2, 3]})
    arrow_tables.replace(rows, context.published_at("spend"), metadata=mark.as_metadata())


def test_each_change_is_one_event_in_the_order_of_commits(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow
) -> None:
    for attempt, changed in (("a1", True), ("a2", False), ("a3", True)):
        publish(context, attempt, changed=changed)
    assert announcer.look() == 2
    assert announcer.look() == 0
    assert airflow.emitted == ["a1", "a3"]
    first = airflow.events[0]
    assert first == {
        "version": 0,
        "changed": True,
        "rows": None,
        "rows_changed": first["rows_changed"],
        "inputs": {"silver.orders": 7},
        "attempt": "a1",
    }


def test_publications_before_the_first_run_get_no_event(
    context: GoldContext, airflow: FakeAirflow
) -> None:
    publish(context, "before")
    announcer = Announcer(lambda: context, EventSender(lambda: airflow))
    assert announcer.look() == 0
    publish(context, "after")
    announcer.look()
    assert airflow.emitted == ["after"]


def test_all_publications_of_a_view_that_was_added_later_get_events(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow
) -> None:
    entry = context.manifest.gold["spend"]
    later = entry.model_copy(update={"name": "late"})
    context.manifest = context.manifest.model_copy(update={"gold": {"spend": entry, "late": later}})
    airflow.assets["gold.late"] = 9
    mark = Watermark(
        view="late",
        sequence=1,
        epoch=1,
        fingerprint="f",
        rule="full",
        vector=VECTOR,
        tick="t1",
        attempt="first of late",
        clock=datetime.now(UTC),
    )
    rows = pa.table({"user_id": [1]})
    arrow_tables.replace(rows, context.published_at("late"), metadata=mark.as_metadata())
    announcer.look()
    assert airflow.emitted == ["first of late"]


def test_events_wait_while_airflow_is_away_and_are_emitted_in_order(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow
) -> None:
    airflow.away = True
    publish(context, "a1")
    publish(context, "a2")
    with pytest.raises(AirflowAwayError):
        announcer.look()
    cursor = context.store.asset_cursors()["spend"]
    assert "nobody answers" in (cursor.error or "")
    assert cursor.waits_since is not None
    airflow.away = False
    assert announcer.look() == 2
    assert airflow.emitted == ["a1", "a2"]
    cursor = context.store.asset_cursors()["spend"]
    assert (cursor.error, cursor.waits_since) == (None, None)


def test_an_event_whose_response_was_lost_is_not_emitted_twice(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow
) -> None:
    publish(context, "a1")
    known = context.store.asset_cursors()["spend"]
    announcer.look()
    # The process ended after Airflow stored the event and before the cursor moved.
    context.store.set_asset_cursor(known)
    announcer.look()
    assert airflow.emitted == ["a1"]


def test_a_task_emits_its_own_event_unless_it_died(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    publish(context, "by a task", announced=True)
    publish(context, "by hand")
    assert announcer.look() == 0, "the order is that of commits"
    airflow.events.append({"attempt": "by a task"})
    announcer.look()
    assert airflow.emitted == ["by a task", "by hand"]

    publish(context, "by a task that died", announced=True)
    announcer.look()
    assert airflow.emitted[2:] == []
    clock.now += TASK_ENDS + timedelta(minutes=1)
    announcer.look()
    assert airflow.emitted[2:] == ["by a task that died"]


def test_events_wait_until_a_dag_names_the_asset(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow
) -> None:
    del airflow.assets["gold.spend"]
    publish(context, "a1")
    assert announcer.look() == 0
    assert context.store.asset_cursors()["spend"].error == ASSET_UNKNOWN
    airflow.assets["gold.spend"] = 12
    announcer.look()
    assert airflow.emitted == ["a1"]


def judge(
    context: GoldContext,
    attempt: str,
    *,
    at: datetime,
    failed: str | None = None,
    view: str = "spend",
) -> None:
    """Put an attempt with a verdict into the ledger."""
    rules = [
        ExpectationResult(
            position=number,
            type="between",
            kwargs={"min_value": 0},
            column=column,
            severity=Severity.CRITICAL,
            success=column != failed,
            unexpected_count=2 if column == failed else 0,
            samples=("397.87",) if column == failed else (),
        )
        for number, column in enumerate(("total", "orders"))
    ]
    verdict = Verdict(table="gold.spend", suite="spend", rows=7, results=tuple(rules))
    context.store.create_attempt(
        RefreshAttempt(
            attempt_id=attempt,
            view=view,
            tick="t1",
            epoch=1,
            started_at=at,
            updated_at=at,
            vector={"silver.orders": {"id": "orders", "version": 7}},
            verdict=verdict.as_dict(),
        )
    )


@pytest.mark.usefixtures("quality")
def test_a_verdict_that_differs_from_the_one_before_is_an_event(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    started = clock.now + timedelta(seconds=1)
    for number, failed in enumerate((None, None, "total", "total", "orders", None)):
        judge(context, f"a{number}", at=started + timedelta(seconds=number), failed=failed)
    assert announcer.look() == 4
    assert airflow.judged == ["a0", "a2", "a4", "a5"]
    assert airflow.verdicts[1] == {
        "outcome": "blocked",
        "rules": 2,
        "failed": [{"rule": "between(total)", "severity": "critical", "rows": 2}],
        "rows": 7,
        "inputs": {"silver.orders": 7},
        "attempt": "a2",
    }
    assert announcer.look() == 0
    # Another process starts, before the cursor has moved and after.
    for minutes in (0, 30):
        clock.now += timedelta(minutes=minutes)
        again = Announcer(lambda: context, EventSender(lambda: airflow), now=clock)
        assert again.look() == 0
    assert context.store.asset_cursors()[verdict_cursor("spend")].at > started
    judge(context, "later", at=clock.now, failed="total")
    assert announcer.look() == 1


@pytest.mark.usefixtures("quality")
def test_verdicts_wait_while_airflow_is_away_and_are_emitted_in_order(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    started = clock.now + timedelta(seconds=2)
    for number, failed in enumerate((None, "total", None)):
        judge(context, f"a{number}", at=started + timedelta(seconds=number), failed=failed)
    airflow.accepts = 1
    for _ in range(2):
        with pytest.raises(AirflowAwayError):
            announcer.look()
        clock.now += timedelta(hours=1)
    assert airflow.judged == ["a0"]
    cursor = context.store.asset_cursors()[verdict_cursor("spend")]
    assert "nobody answers" in (cursor.error or "")
    assert cursor.waits_since == started + timedelta(seconds=1)
    airflow.away, airflow.accepts = False, None
    assert announcer.look() == 2
    assert airflow.judged == ["a0", "a1", "a2"]
    cursor = context.store.asset_cursors()[verdict_cursor("spend")]
    assert (cursor.error, cursor.waits_since) == (None, None)


def test_verdicts_wait_until_a_dag_names_the_asset(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    started = clock.now + timedelta(seconds=1)
    for number, failed in enumerate((None, "total")):
        judge(context, f"a{number}", at=started + timedelta(seconds=number), failed=failed)
        assert announcer.look() == 0
    assert context.store.asset_cursors()[verdict_cursor("spend")].error == ASSET_UNKNOWN
    # Longer than a cursor lags behind, and another process by then.
    clock.now += timedelta(days=3)
    judge(context, "a2", at=clock.now, failed="orders")
    again = Announcer(lambda: context, EventSender(lambda: airflow), now=clock)
    assert again.look() == 0
    airflow.assets["gold.spend.quality"] = 5
    assert again.look() == 0, "it asks once a minute"
    clock.now += RETRY
    assert again.look() == 3
    assert airflow.judged == ["a0", "a1", "a2"]
    assert again.look() == 0


@pytest.mark.usefixtures("quality")
def test_verdicts_wait_for_the_password_of_airflow(
    context: GoldContext, airflow: FakeAirflow, clock: Clock
) -> None:
    known: list[FakeAirflow] = []
    announcer = Announcer(
        lambda: context, EventSender(lambda: known[0] if known else None), now=clock
    )
    announcer.look()
    judge(context, "a0", at=clock.now + timedelta(seconds=1), failed="total")
    assert announcer.look() == 0
    assert context.store.asset_cursors()[verdict_cursor("spend")].error == NO_AIRFLOW
    clock.now += 3 * OVERLAP
    assert announcer.look() == 0
    known.append(airflow)
    clock.now += RETRY
    assert announcer.look() == 1
    assert airflow.judged == ["a0"]


@pytest.mark.usefixtures("quality")
def test_a_view_without_an_asset_does_not_delay_the_verdicts_of_others(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    entry = context.manifest.gold["spend"]
    first = entry.model_copy(update={"name": "first"})
    context.manifest = context.manifest.model_copy(
        update={"gold": {"first": first, "spend": entry}}
    )
    at = clock.now + timedelta(seconds=1)
    judge(context, "waits", view="first", at=at, failed="total")
    judge(context, "a0", at=at, failed="total")
    assert announcer.look() == 1
    clock.now += timedelta(hours=1)
    judge(context, "a1", at=clock.now)
    assert announcer.look() == 1
    assert airflow.judged == ["a0", "a1"]
    cursors = context.store.asset_cursors()
    assert cursors[verdict_cursor("first")].waits_since == at
    assert cursors[verdict_cursor("spend")].waits_since is None


@pytest.mark.usefixtures("quality")
def test_a_verdict_whose_attempt_changes_while_it_waits_keeps_its_place(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    started = clock.now - timedelta(hours=1)
    cursors = context.store.asset_cursors()
    context.store.set_asset_cursor(replace(cursors[CURSOR], at=started - timedelta(hours=1)))
    judge(context, "blocked", at=started, failed="total")
    judge(context, "passed", at=started + timedelta(minutes=1))
    context.store.update_attempt("blocked", status=AttemptStatus.SUPERSEDED)
    assert announcer.look() == 2
    assert airflow.judged == ["blocked", "passed"]


@pytest.mark.usefixtures("quality")
def test_the_cursor_of_an_older_release_is_where_each_view_starts(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow, clock: Clock
) -> None:
    reached = clock.now - timedelta(hours=1)
    context.store.set_asset_cursor(AssetCursor(CURSOR, "", -1, reached))
    judge(context, "old", at=reached - timedelta(minutes=1), failed="total")
    judge(context, "new", at=reached + timedelta(minutes=1))
    assert announcer.look() == 1
    assert airflow.judged == ["new"]


def test_all_publications_of_a_recreated_table_get_events(
    context: GoldContext, announcer: Announcer, airflow: FakeAirflow
) -> None:
    publish(context, "a1")
    announcer.look()
    known = context.store.asset_cursors()["spend"]
    context.store.set_asset_cursor(replace(known, table_id="another", version=99))
    airflow.events.clear()
    announcer.look()
    assert airflow.emitted == ["a1"]

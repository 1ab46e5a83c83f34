"""Continuous views: they follow what happens to their inputs, alone, and publish it once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest

from spark_jobs.gold.continuous.loop import ContinuousGold
from spark_jobs.gold.continuous.view import LONGEST_PAUSE_SECONDS
from spark_jobs.gold.refresh import publishing, staging
from spark_jobs.gold.refresh import steps as refresh
from spark_jobs.gold.refresh.steps import Refresher
from spark_jobs.planning.plan import RefreshPlan
from spark_jobs.sections import GoldSettings, StreamSettings
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.state.progress import StreamState
from spark_jobs.state.ticks import CONTINUOUS
from spark_jobs.storage import log
from tests.spark.conftest import TOTALS
from tests.spark.gold_project import GoldProject

MORE = "SELECT 4L AS order_id, 'eve' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount"
COUNTED = "SELECT COUNT(*) AS customers, SUM(t.orders) AS orders FROM gold.totals AS t"
BROKEN = """SELECT o.customer, CAST(SUM(o.amount) AS DECIMAL(4, 2)) AS amount
FROM silver.orders AS o GROUP BY o.customer"""
# Of the failpoints of a refresh those between two steps, and both sides of the commit.
KILLS = (
    "gold.plan.recorded",
    "gold.stage.recorded",
    "gold.audit.recorded",
    "gold.publish.before_commit",
    "gold.publish.committed",
)
RULE = {
    "name": "totals",
    "expectations": [
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "orders", "max_value": 1},
        }
    ],
}


@dataclass
class Follower:
    """The continuous views of a project; a new one each time the application starts."""

    gold: GoldProject
    now: float = 0.0
    one: ContinuousGold = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        gold = self.gold
        self.one = ContinuousGold(
            gold.settings, gold.store, lambda: gold.manifest, clock=lambda: self.now
        )

    def follow(self, *, after: float = 0) -> int:
        """One pass, some seconds after the last one."""
        self.now += after
        return self.one.follow_once(self.gold.spark)

    def state(self, view: str) -> StreamState:
        return next(one.state for one in self.one.views if one.entry.name == view)

    def error(self, view: str) -> str | None:
        return next(one.error for one in self.one.views if one.entry.name == view)


@pytest.fixture
def follower(gold: GoldProject) -> Follower:
    gold.view("totals", TOTALS, maintained=True, policy="continuous")
    return Follower(gold)


def test_a_view_follows_inserts_updates_and_deletes(gold: GoldProject, follower: Follower) -> None:
    assert follower.follow() == 1
    for change in (
        lambda: gold.append("silver.orders", MORE),
        lambda: gold.execute("UPDATE {} SET amount = 7 WHERE order_id = 2", "silver.orders"),
        lambda: gold.execute("DELETE FROM {} WHERE customer = 'ann'", "silver.orders"),
    ):
        change()
        assert follower.follow() == 1
        assert follower.follow() == 0
    assert gold.rows("totals") == [
        (None, 1, None),
        ("bob", 1, Decimal("7.00")),
        ("eve", 1, Decimal("1.00")),
    ]
    done = gold.attempts("totals")
    assert [one.decision for one in done] == [*["incremental"] * 3, "full"]
    assert {one.tick for one in done} == {CONTINUOUS}
    assert gold.store.pins(CONTINUOUS) == {}
    gold.assert_right("totals")


def test_commits_without_rows_leave_no_trace(gold: GoldProject, follower: Follower) -> None:
    follower.follow()
    gold.execute("ALTER TABLE {} SET TBLPROPERTIES ('a' = 'b')", "silver.orders")
    assert follower.follow() == 1
    assert follower.follow() == 0
    assert len(gold.attempts("totals")) == 1


def test_views_over_views_are_in_line_after_one_pass(gold: GoldProject, follower: Follower) -> None:
    gold.view("counted", COUNTED, inputs=("gold.totals",), policy="continuous")
    assert follower.follow() == 2
    gold.append("silver.orders", MORE)
    assert follower.follow() == 2
    assert gold.rows("counted") == [(4, 4)]
    assert follower.follow() == 0
    [upstream, downstream] = [gold.publications(view)[-1] for view in ("totals", "counted")]
    read = downstream["vector"]["gold.totals"]["version"]
    assert read == log.table_version(gold.location("gold.totals")).version
    assert upstream["vector"]["silver.orders"]["version"] == 1
    gold.assert_right("counted")


def test_a_blocked_view_waits_for_other_inputs(gold: GoldProject, follower: Follower) -> None:
    follower.follow()
    gold.view("totals", TOTALS, maintained=True, policy="continuous", suite=RULE)
    gold.append("silver.orders", MORE.replace("eve", "ann"))
    assert follower.follow() == 1
    assert follower.state("totals") is StreamState.BLOCKED
    assert "GATE_BLOCKED" in follower.error("totals")
    assert follower.follow(after=1000) == 0, "the same inputs would be blocked again"
    gold.append("silver.orders", MORE)
    assert follower.follow(after=1000) == 1
    lake = gold.refresher.context.lake
    kept = [
        one
        for one in gold.attempts("totals", AttemptStatus.BLOCKED)
        if log.table_version(lake.staging("totals", one.attempt_id))
    ]
    gold.execute("DELETE FROM {} WHERE order_id = 4 AND customer = 'ann'", "silver.orders")
    assert follower.follow() == 0, "not before its pause is over"
    assert follower.follow(after=LONGEST_PAUSE_SECONDS) == 1
    assert (follower.state("totals"), follower.error("totals")) == (StreamState.RUNNING, None)
    assert len(gold.rows("totals")) == 4
    assert len(kept) <= 2
    gold.assert_right("totals")


def test_an_error_is_its_views_alone_and_is_tried_again(
    gold: GoldProject, follower: Follower
) -> None:
    gold.view("broken", BROKEN, policy="continuous")
    gold.append("silver.orders", MORE.replace("CAST(1 AS", "CAST(1000 AS"))
    assert follower.follow() == 2
    assert follower.state("broken") is StreamState.FAILED
    assert "QUERY_FAILED" in follower.error("broken")
    assert follower.state("totals") is StreamState.RUNNING
    assert len(gold.rows("totals")) == 4
    assert [follower.follow(after=1.9), follower.follow(after=0.2)] == [0, 1]
    assert [follower.follow(after=3.9), follower.follow(after=0.2)] == [0, 1]
    gold.execute("DELETE FROM {} WHERE order_id = 4", "silver.orders")
    follower.follow(after=LONGEST_PAUSE_SECONDS)
    assert follower.state("broken") is StreamState.RUNNING
    assert len(gold.rows("broken")) == 3


class Killed(BaseException):
    """Ends the application as a signal would."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    def arm(name: str | None) -> None:
        def failpoint(passed: str) -> None:
            if passed == name:
                raise Killed(name)

        for module in (refresh, staging, publishing):
            monkeypatch.setattr(module, "failpoint", failpoint)

    return arm


def test_a_killed_application_that_starts_again_publishes_once(
    gold: GoldProject, follower: Follower, kill_at
) -> None:
    follower.follow()
    for killed, name in enumerate(KILLS, start=1):
        gold.append("silver.orders", MORE)
        kill_at(name)
        with pytest.raises(Killed):
            follower.follow()
        kill_at(None)
        follower.restart()
        follower.follow()
        assert follower.follow() == 0
        assert len(gold.publications("totals")) == 1 + killed, name
        assert gold.attempts("totals", *refresh.ledger.OPEN) == []
    assert gold.rows("totals")[-1] == ("eve", killed, Decimal(killed))
    gold.assert_right("totals")


def test_it_stops_between_two_steps_and_continues_there(
    gold: GoldProject, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = staging.stage

    def stage(*arguments):
        follower.one.stopping.set()
        return staged(*arguments)

    monkeypatch.setattr(staging, "stage", stage)
    follower.follow()
    [left] = gold.attempts("totals")
    assert left.status is AttemptStatus.STAGED
    follower.restart()
    follower.one.stopping.clear()
    monkeypatch.setattr(staging, "stage", staged)
    follower.follow()
    [done] = gold.attempts("totals")
    assert (done.attempt_id, done.status) == (left.attempt_id, AttemptStatus.PUBLISHED)


def test_a_refresh_by_hand_beside_it_is_no_harm(
    gold: GoldProject, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower.follow()
    gold.append("silver.orders", MORE)
    staged = staging.stage

    def overtaken(*arguments):
        monkeypatch.setattr(staging, "stage", staged)
        result = staged(*arguments)
        gold.refresh("totals", "by hand")
        return result

    monkeypatch.setattr(staging, "stage", overtaken)
    follower.follow()
    follower.follow(after=LONGEST_PAUSE_SECONDS)
    assert follower.state("totals") is StreamState.RUNNING
    assert follower.follow() == 0
    assert [one["tick"] for one in gold.publications("totals")] == [CONTINUOUS, "by hand"]
    gold.execute("DELETE FROM {} WHERE customer = 'ann'", "gold.totals")
    assert follower.follow() == 1, "its own table is looked at too"
    assert len(gold.rows("totals")) == 4
    gold.assert_right("totals")


def test_one_word_moves_a_view_between_policies(gold: GoldProject, follower: Follower) -> None:
    follower.follow()
    follower.one.report()
    gold.view("totals", TOTALS, maintained=True, policy="micro-batch")
    gold.append("silver.orders", MORE)
    assert follower.follow() == 0
    assert gold.store.progress() == []
    assert gold.refresh("totals", "t1").plan.word == "incremental"
    gold.view("totals", TOTALS, maintained=True, policy="continuous")
    gold.execute("DELETE FROM {} WHERE customer = 'ann'", "silver.orders")
    assert follower.follow() == 1
    assert gold.attempts("totals")[0].decision == "incremental"
    gold.assert_right("totals")


def test_a_view_that_reads_the_clock_is_refreshed_by_time(
    gold: GoldProject, follower: Follower
) -> None:
    seconds = GoldSettings().clock_seconds
    clock = "SELECT CURRENT_TIMESTAMP() AS at, COUNT(*) AS orders FROM silver.orders AS o"
    gold.view("timed", clock, reads_clock=True, policy="continuous")
    follower.follow()
    [first] = gold.rows("timed")
    assert follower.follow(after=seconds - 1) == 0
    assert follower.follow(after=2) == 1
    [second] = gold.rows("timed")
    assert second[0] > first[0]
    gold.assert_right("timed")


def test_the_application_runs_until_it_is_stopped(gold: GoldProject) -> None:
    gold.view("totals", TOTALS, maintained=True, policy="continuous")
    quick = gold.settings.model_copy(update={"streams": StreamSettings(gold_trigger_seconds=0.1)})
    stopping = threading.Event()
    one = ContinuousGold(quick, gold.store, lambda: gold.manifest, stopping)
    with one.following(gold.spark):
        one.report()
        wait_for_version(gold, 0)
        gold.append("silver.orders", MORE)
        wait_for_version(gold, 1)
        one.report()
        [row] = gold.store.progress()
        assert (row.query, row.error) == ("gold.totals", None)
    assert stopping.is_set()
    [row] = gold.store.progress()
    assert (row.state, row.batch_id, row.records) == (StreamState.STOPPED, 1, 1)


def test_a_long_refresh_delays_only_the_views_that_read_it(
    gold: GoldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold.view("totals", TOTALS, maintained=True, policy="continuous")
    gold.view("counted", COUNTED, inputs=("gold.totals",), policy="continuous")
    gold.view("every", "SELECT COUNT(*) AS orders FROM silver.orders AS o", policy="continuous")
    quick = gold.settings.model_copy(update={"streams": StreamSettings(gold_trigger_seconds=0.1)})
    begun, may_end, carry_out = threading.Event(), threading.Event(), Refresher.carry_out

    def slow(refresher: Refresher, plan: RefreshPlan, **named: Any) -> None:
        if plan.view == "totals":
            begun.set()
            assert may_end.wait(60)
        carry_out(refresher, plan, **named)

    monkeypatch.setattr(Refresher, "carry_out", slow)
    one = ContinuousGold(quick, gold.store, lambda: gold.manifest)
    with one.following(gold.spark):
        one.report()
        assert begun.wait(60)
        wait_for_version(gold, 0, view="every")
        gold.append("silver.orders", MORE)
        wait_for_version(gold, 1, view="every")
        assert not gold.attempts("totals", AttemptStatus.PUBLISHED)
        assert not gold.attempts("counted")
        may_end.set()
        # Its long refresh read the first orders, and so did the view that reads it.
        wait_for_version(gold, 1)
        wait_for_version(gold, 1, view="counted")
    for view in ("totals", "counted", "every"):
        gold.assert_right(view)


def wait_for_version(gold: GoldProject, version: int, *, view: str = "totals") -> None:
    deadline = time.monotonic() + 60
    while True:
        found = gold.attempts(view, AttemptStatus.PUBLISHED)
        if found and found[0].published_version == version:
            return
        assert time.monotonic() < deadline, gold.attempts(view)
        time.sleep(0.05)

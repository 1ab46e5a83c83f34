"""A person publishes what the gate blocks: once, as it was judged, with a reason that is kept."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from spark_jobs.gold.base.errors import BaseMovedError, NothingToReleaseError, ReleaseRefusedError
from spark_jobs.gold.recover import release as releasing
from spark_jobs.gold.recover.release import (
    FAILPOINTS,
    blocked_attempt,
    newer_input,
    release_blocked,
)
from spark_jobs.gold.recover.rollback import Rollbacker
from spark_jobs.gold.refresh import publishing
from spark_jobs.gold.refresh.staging import staged_at
from spark_jobs.planning.request import Why
from spark_jobs.quality.errors import GateBlockedError, GateCrashedError, StillBlockedError
from spark_jobs.state.attempts import AttemptStatus
from spark_jobs.storage import log
from spark_jobs.storage.history import remove_table
from tests.spark.gold_project import GoldProject

RULE = {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "customer"}}
SUITE = {"name": "totals", "expectations": [RULE]}
WHY = Why("the guest orders are right", "OPS-7")
ANN, EVE = (
    f"SELECT {number}L AS order_id, '{name}' AS customer, CAST(1 AS DECIMAL(12, 2)) AS amount"
    for number, name in ((4, "ann"), (5, "eve"))
)
WITH_ANN = [(None, 1, None), ("ann", 2, Decimal("11.00")), ("bob", 1, Decimal("5.50"))]


class Killed(BaseException):
    """Ends a run as a signal would: nothing that handles errors sees it."""


@pytest.fixture
def kill_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Arm a failpoint; it goes off once."""

    def arm(name: str) -> None:
        armed = [name]

        def failpoint(passed: str) -> None:
            if passed in armed:
                armed.clear()
                raise Killed(passed)

        for module in (publishing, releasing):
            monkeypatch.setattr(module, "failpoint", failpoint)

    return arm


@pytest.fixture(params=[False, True], ids=["full", "incremental"])
def blocked(gold: GoldProject, request: pytest.FixtureRequest) -> GoldProject:
    """``totals`` is published without the order of ann that its newest result has."""
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, maintained=request.param)
    gold.refresh("totals", "t1")
    gold.view("totals", query, maintained=request.param, suite=SUITE)
    gold.append("silver.orders", ANN)
    with pytest.raises(GateBlockedError):
        gold.refresh("totals", "t2")
    (attempt,) = gold.attempts("totals", AttemptStatus.BLOCKED)
    assert attempt.decision == ("incremental" if request.param else "full")
    return gold


def release(gold: GoldProject, **more: str):
    return release_blocked(gold.refresher, "totals", who="ann", why=WHY, **more)


def test_a_release_publishes_the_judged_result_despite_newer_input(blocked: GoldProject) -> None:
    blocked.append("silver.orders", EVE)
    published = release(blocked)

    assert (published.version, published.changed) == (1, True)
    assert blocked.rows("totals") == WITH_ANN
    blocked.assert_right("totals")
    mark = blocked.publications("totals")[-1]
    assert mark["vector"]["silver.orders"]["version"] == 1
    expected = {
        "outcome": "released",
        "released_by": "ann",
        "release_reason": WHY.reason,
        "release_ticket": WHY.ticket,
        "released_rules": "expect_column_values_to_not_be_null(customer)",
    }
    assert mark["verdict"].items() >= expected.items()
    (row,) = [one for one in blocked.attempts("totals") if one.attempt_id == published.attempt_id]
    assert (row.status, row.published_version) == (AttemptStatus.PUBLISHED, 1)
    assert row.verdict is not None
    assert row.verdict.items() >= expected.items()

    with pytest.raises(NothingToReleaseError):
        release(blocked)
    with pytest.raises(GateBlockedError):
        blocked.refresh("totals", "t3")
    assert blocked.rows("totals") == WITH_ANN, "the rules stay"


def test_a_killed_release_continues_and_publishes_once(blocked: GoldProject, kill_at) -> None:
    for name in (*FAILPOINTS, "gold.publish.before_commit"):
        kill_at(name)
        with pytest.raises(Killed, match=name):
            release(blocked)
    assert len(blocked.publications("totals")) == 1
    kill_at("gold.publish.committed")
    with pytest.raises(Killed):
        release(blocked)
    published = release(blocked)
    # As a task that is tried again: it names the result.
    assert release(blocked, attempt_id=published.attempt_id) == published
    assert published.version is not None
    assert len(blocked.publications("totals")) == 2
    assert blocked.rows("totals") == WITH_ANN
    with pytest.raises(NothingToReleaseError):
        release(blocked)


def test_a_blocked_result_waits_while_scheduled_refreshes_continue(blocked: GoldProject) -> None:
    """A newer result that nobody asked for takes its place only where the gate lets it through."""
    seen = blocked_attempt(blocked.refresher, "totals")
    assert newer_input(blocked.refresher, seen).versions == {}
    blocked.append("silver.orders", EVE)
    for tick in ("t3", "t4"):
        with pytest.raises(StillBlockedError, match="newer input") as still:
            blocked.refresh("totals", tick)
        assert still.value.waiting == seen.attempt_id
        assert f"tidemark release {still.value.view}" in (still.value.hint or "")
    assert str(newer_input(blocked.refresher, seen)) == "silver.orders@2"
    newest = blocked.attempts("totals")[0]
    assert (newest.status, newest.verdict["outcome"]) == (AttemptStatus.SUPERSEDED, "blocked")
    assert log.table_version(staged_at(blocked.refresher.context, newest)) is None

    published = release(blocked, attempt_id=seen.attempt_id)
    assert (published.attempt_id, published.changed) == (seen.attempt_id, True)
    assert blocked.rows("totals") == WITH_ANN


def test_a_newer_result_that_passes_ends_the_wait(blocked: GoldProject) -> None:
    seen = blocked_attempt(blocked.refresher, "totals").attempt_id
    blocked.execute("DELETE FROM {} WHERE customer IS NULL", "silver.orders")
    assert blocked.refresh("totals", "t3").status is AttemptStatus.PUBLISHED
    with pytest.raises(ReleaseRefusedError, match="published meanwhile, as version 1"):
        release(blocked, attempt_id=seen)
    with pytest.raises(NothingToReleaseError):
        release(blocked)


def test_a_person_puts_a_newer_result_into_its_place(gold: GoldProject) -> None:
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, suite=SUITE)
    with pytest.raises(GateBlockedError):
        gold.refresh("totals", "t1")
    seen = blocked_attempt(gold.refresher, "totals").attempt_id
    gold.append("silver.orders", ANN)
    with pytest.raises(GateBlockedError) as again:
        gold.refresher.run("totals", tick="t2", asked_by="eve")
    assert again.value.condition == "GATE_BLOCKED"
    newest = blocked_attempt(gold.refresher, "totals")
    assert (newest.asked_by, newest.attempt_id == seen) == ("eve", False)
    assert blocked_attempt(gold.refresher, "totals", attempt_id=seen).attempt_id == seen

    remove_table(staged_at(gold.refresher.context, newest))
    with pytest.raises(ReleaseRefusedError, match="was removed"):
        release(gold)
    with pytest.raises(ReleaseRefusedError, match="does not wait") as other:
        release(gold, attempt_id="totals-20260101T000000-00000000")
    assert other.value.newer == newest.attempt_id
    assert f"--attempt {newest.attempt_id}" in (other.value.hint or "")

    gold.view("totals", f"{query} HAVING COUNT(*) > 0", suite=SUITE)
    with pytest.raises(ReleaseRefusedError, match="definition"):
        release(gold)
    assert gold.publications("totals") == []
    gold.view("totals", query, suite=SUITE)
    published = release(gold, attempt_id=seen, approved_by="bob")
    assert published.attempt_id == seen
    (row,) = gold.attempts("totals", AttemptStatus.PUBLISHED)
    assert row.verdict is not None
    assert (row.verdict["released_by"], row.verdict["approved_by"]) == ("ann", "bob")


def test_a_change_of_other_content_is_refused(gold: GoldProject) -> None:
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, maintained=True)
    gold.refresh("totals", "t1")
    gold.view("totals", query, maintained=True, suite=SUITE)
    gold.append("silver.orders", ANN)
    with pytest.raises(GateBlockedError):
        gold.refresh("totals", "t2")
    gold.execute("DELETE FROM {} WHERE customer = 'bob'", "gold.totals")

    with pytest.raises(BaseMovedError):
        release(gold)
    assert len(gold.rows("totals")) == 2


def test_a_gate_that_crashed_lets_nothing_through(gold: GoldProject) -> None:
    broken = {**RULE, "kwargs": {"column": "nothing"}}
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, suite={"name": "totals", "expectations": [broken]})
    with pytest.raises(NothingToReleaseError):
        release(gold)
    with pytest.raises(GateCrashedError):
        gold.refresh("totals", "t1")

    with pytest.raises(ReleaseRefusedError, match="did not check"):
        release(gold)
    assert gold.publications("totals") == []


def test_a_release_does_not_undo_a_rollback(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.append("silver.orders", ANN)
    gold.refresh("totals", "t2")
    gold.view("totals", gold.manifest.gold["totals"].query, suite=SUITE)
    gold.append("silver.orders", EVE)
    with pytest.raises(GateBlockedError):
        gold.refresh("totals", "t3")
    rollbacker = Rollbacker(gold.refresher)
    rollbacker.begin("totals", rollbacker.target("totals"), replay_id="b1", who="ann", why=WHY)
    rollbacker.run("b1")

    with pytest.raises(ReleaseRefusedError, match="ops__release, or tidemark release totals"):
        release(gold)
    rollbacker.release("totals", who="ann")
    with pytest.raises(ReleaseRefusedError, match="newer result"):
        release(gold)
    assert ("ann", 1, Decimal("10.00")) in gold.rows("totals")

"""A person lets through what the gate holds: once, as it was judged, with a reason that is kept."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from spark_jobs.gold import publishing
from spark_jobs.gold import release as releasing
from spark_jobs.gold.errors import BaseMovedError, NotHeldError, ReleaseRefusedError
from spark_jobs.gold.release import FAILPOINTS, held_attempt, release_held
from spark_jobs.gold.rollback import Rollbacker
from spark_jobs.gold.staging import staged_at
from spark_jobs.planning.request import Why
from spark_jobs.quality.errors import GateCrashedError, GateHeldError
from spark_jobs.state.attempts import AttemptStatus
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
def held(gold: GoldProject, request: pytest.FixtureRequest) -> GoldProject:
    """``totals`` is published without the order of ann that its newest result has."""
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, maintained=request.param)
    gold.refresh("totals", "t1")
    gold.view("totals", query, maintained=request.param, suite=SUITE)
    gold.append("silver.orders", ANN)
    with pytest.raises(GateHeldError):
        gold.refresh("totals", "t2")
    (attempt,) = gold.attempts("totals", AttemptStatus.HELD)
    assert attempt.decision == ("incremental" if request.param else "full")
    return gold


def release(gold: GoldProject, **more: str):
    return release_held(gold.refresher, "totals", who="ann", why=WHY, **more)


def test_what_was_judged_is_published_whatever_came_since(held: GoldProject) -> None:
    held.append("silver.orders", EVE)
    published = release(held)

    assert (published.version, published.changed) == (1, True)
    assert held.rows("totals") == WITH_ANN
    assert held.verify("totals").holds
    mark = held.publications("totals")[-1]
    assert mark["vector"]["silver.orders"]["version"] == 1
    expected = {
        "outcome": "released",
        "released_by": "ann",
        "release_reason": WHY.reason,
        "release_ticket": WHY.ticket,
        "released_rules": "expect_column_values_to_not_be_null(customer)",
    }
    assert mark["verdict"].items() >= expected.items()
    (row,) = [one for one in held.attempts("totals") if one.attempt_id == published.attempt_id]
    assert (row.status, row.published_version) == (AttemptStatus.PUBLISHED, 1)
    assert row.verdict is not None
    assert row.verdict.items() >= expected.items()

    with pytest.raises(NotHeldError):
        release(held)
    with pytest.raises(GateHeldError):
        held.refresh("totals", "t3")
    assert held.rows("totals") == WITH_ANN, "the rules stay"


def test_a_release_that_is_killed_goes_on_and_publishes_once(held: GoldProject, kill_at) -> None:
    for name in (*FAILPOINTS, "gold.publish.before_commit"):
        kill_at(name)
        with pytest.raises(Killed, match=name):
            release(held)
    assert len(held.publications("totals")) == 1
    release(held)
    assert len(held.publications("totals")) == 2
    assert held.rows("totals") == WITH_ANN


def test_only_the_result_that_somebody_looked_at_is_let_through(gold: GoldProject) -> None:
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, suite=SUITE)
    with pytest.raises(GateHeldError):
        gold.refresh("totals", "t1")
    seen = held_attempt(gold.refresher, "totals").attempt_id
    gold.append("silver.orders", ANN)
    with pytest.raises(GateHeldError):
        gold.refresh("totals", "t2")
    with pytest.raises(ReleaseRefusedError, match="newer one"):
        release(gold, attempt_id=seen)

    gold.view("totals", f"{query} HAVING COUNT(*) > 0", suite=SUITE)
    with pytest.raises(ReleaseRefusedError, match="definition"):
        release(gold)
    gold.view("totals", query, suite=SUITE)
    remove_table(staged_at(gold.refresher.context, held_attempt(gold.refresher, "totals")))
    with pytest.raises(ReleaseRefusedError, match="kept no longer"):
        release(gold)
    assert gold.publications("totals") == []


def test_a_change_of_other_content_is_refused(gold: GoldProject) -> None:
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, maintained=True)
    gold.refresh("totals", "t1")
    gold.view("totals", query, maintained=True, suite=SUITE)
    gold.append("silver.orders", ANN)
    with pytest.raises(GateHeldError):
        gold.refresh("totals", "t2")
    gold.execute("DELETE FROM {} WHERE customer = 'bob'", "gold.totals")

    with pytest.raises(BaseMovedError):
        release(gold)
    assert len(gold.rows("totals")) == 2


def test_a_gate_that_crashed_lets_nothing_through(gold: GoldProject) -> None:
    broken = {**RULE, "kwargs": {"column": "nothing"}}
    query = gold.manifest.gold["totals"].query
    gold.view("totals", query, suite={"name": "totals", "expectations": [broken]})
    with pytest.raises(NotHeldError):
        release(gold)
    with pytest.raises(GateCrashedError):
        gold.refresh("totals", "t1")

    with pytest.raises(ReleaseRefusedError, match="did not judge"):
        release(gold)
    assert gold.publications("totals") == []


def test_a_release_does_not_undo_a_rollback(gold: GoldProject) -> None:
    gold.refresh("totals", "t1")
    gold.append("silver.orders", ANN)
    gold.refresh("totals", "t2")
    gold.view("totals", gold.manifest.gold["totals"].query, suite=SUITE)
    gold.append("silver.orders", EVE)
    with pytest.raises(GateHeldError):
        gold.refresh("totals", "t3")
    rollbacker = Rollbacker(gold.refresher)
    rollbacker.begin("totals", rollbacker.target("totals"), replay_id="b1", who="ann", why=WHY)
    rollbacker.run("b1")

    with pytest.raises(ReleaseRefusedError, match="tidemark release totals"):
        release(gold)
    rollbacker.release("totals")
    with pytest.raises(ReleaseRefusedError, match="newer result"):
        release(gold)
    assert ("ann", 1, Decimal("10.00")) in gold.rows("totals")

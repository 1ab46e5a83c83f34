"""Replays, rollbacks and pinned views in the control database; older databases."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, text

from spark_jobs.state.engine import make_engine
from spark_jobs.state.errors import ReplayNotFoundError
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.replays import (
    Asked,
    Decision,
    DecisionKind,
    ReplayKind,
    ReplayRecord,
    ReplayStatus,
    ViewProgress,
    approval,
)
from spark_jobs.state.store import ControlStore
from spark_jobs.state.tables import SCHEMA_VERSION


def record(replay_id: str = "r1", **change: object) -> ReplayRecord:
    values = {
        "replay_id": replay_id,
        "kind": ReplayKind.REPLAY,
        "who": "ann",
        "reason": "amounts are wrong",
        "request": {"views": ["daily", "weekly"]},
        "plan": {},
    }
    return ReplayRecord(**(values | change))


def test_the_first_writer_of_an_id_wins(store: ControlStore) -> None:
    first = store.begin_replay(record(), views=["daily", "weekly"])
    assert store.begin_replay(record(who="bob"), views=["other"]) == first
    assert [one.view for one in store.replay_views("r1")] == ["daily", "weekly"]
    assert store.replay("r1").as_dict()["status"] == "running"
    for ask in (lambda: store.replay("r2"), lambda: store.replay_view("r1", "other")):
        with pytest.raises(ReplayNotFoundError):
            ask()


def test_progress_is_kept_by_view(store: ControlStore) -> None:
    store.begin_replay(record(), views=["daily", "weekly"])
    store.update_replay_view("r1", "daily", status=ViewProgress.BUILT, difference={"leaving": 1})
    done, waiting = store.replay_views("r1")
    assert (done.status, done.difference) == (ViewProgress.BUILT, {"leaving": 1})
    assert waiting.status is ViewProgress.WAITING
    assert store.replay_view("r1", "daily").as_dict()["status"] == "built"


def test_replays_are_listed_by_their_status(store: ControlStore) -> None:
    store.begin_replay(record("r1"), views=["daily"])
    store.begin_replay(record("b1", kind=ReplayKind.ROLLBACK), views=["daily"])
    store.end_replay("r1", status=ReplayStatus.FAILED, error="daily: GATE_BLOCKED")
    assert [one.replay_id for one in store.replays()] == ["b1", "r1"]
    assert [one.replay_id for one in store.replays(statuses=(ReplayStatus.RUNNING,))] == ["b1"]
    assert store.replay("r1").error == "daily: GATE_BLOCKED"


def test_a_view_is_pinned_until_it_is_released(store: ControlStore) -> None:
    pinned = PinnedView(view="daily", version=3, who="ann", reason="negative", replay_id="b1")
    store.pin_view(pinned)
    store.pin_view(pinned)
    assert store.pinned_views() == {"daily": pinned}
    assert pinned.as_dict()["since"] == pinned.since.isoformat()
    assert store.release("daily")
    assert not store.release("daily")
    assert store.pinned_views() == {}


def test_decisions_are_kept_with_the_replay_record(store: ControlStore) -> None:
    store.begin_replay(record("r1"), views=["daily"])
    assert (store.replay("r1").decisions, store.replay("r1").approved_by) == ([], None)
    store.begin_replay(
        record("b1", kind=ReplayKind.ROLLBACK, decisions=approval("eve")), views=["daily"]
    )
    pinned = PinnedView(view="daily", version=3, who="ann", reason="negative", replay_id="b1")
    store.pin_view(pinned)
    ended = Decision(
        what=DecisionKind.PIN_ENDED, who="bob", reason="fixed at the source", ticket="OPS-1"
    )
    assert store.end_pin(pinned, ended)
    assert not store.end_pin(pinned, ended)
    assert store.pinned_views() == {}
    kept = store.replay("b1").as_dict()
    assert kept["approved_by"] == "eve"
    assert [one["what"] for one in kept["decisions"]] == ["approved", "pin ended"]
    assert kept["decisions"][1] == ended.as_dict()


def test_who_asks_again_for_a_replay_is_recorded_with_it(store: ControlStore) -> None:
    first = store.begin_replay(record(decisions=approval("eve")), views=["daily"])
    assert store.ask_again("r1", first.asked) == first
    later = Asked("bob", "the amounts are wrong again", "OPS-2", None)
    for _ in range(2):
        again = store.ask_again("r1", later)
        assert (again.asked, again.approved_by, again.who) == (later, None, "ann")
        assert [one["what"] for one in again.decisions] == ["approved", "asked again"]


def test_an_older_database_gets_the_columns_that_it_lacks(control_url: str) -> None:
    ControlStore.open(control_url).close()
    engine = make_engine(control_url)
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE attempts DROP COLUMN scope",
            "DROP TABLE pinned_views",
            f"UPDATE tidemark_schema SET version = {SCHEMA_VERSION - 1}",
        ):
            connection.execute(text(statement)).close()
    with ControlStore.open(control_url) as store:
        assert store.attempts() == []
        assert store.pinned_views() == {}
    with engine.begin() as connection:
        columns = {one["name"] for one in inspect(connection).get_columns("attempts")}
    engine.dispose()
    assert "scope" in columns

"""Replays, rollbacks and holds in the control database, and databases of an older release."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect, text

from spark_jobs.state.engine import make_engine
from spark_jobs.state.errors import ReplayNotFoundError
from spark_jobs.state.holds import Hold
from spark_jobs.state.replays import ReplayKind, ReplayRecord, ReplayStatus, ViewProgress
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
    store.end_replay("r1", status=ReplayStatus.FAILED, error="daily: GATE_HELD")
    assert [one.replay_id for one in store.replays()] == ["b1", "r1"]
    assert [one.replay_id for one in store.replays(statuses=(ReplayStatus.RUNNING,))] == ["b1"]
    assert store.replay("r1").error == "daily: GATE_HELD"


def test_a_view_is_held_until_it_is_released(store: ControlStore) -> None:
    hold = Hold(view="daily", version=3, who="ann", reason="negative", replay_id="b1")
    store.put_hold(hold)
    store.put_hold(hold)
    assert store.holds() == {"daily": hold}
    assert hold.as_dict()["since"] == hold.since.isoformat()
    assert store.release("daily")
    assert not store.release("daily")
    assert store.holds() == {}


def test_an_older_database_gets_the_columns_that_it_lacks(control_url: str) -> None:
    ControlStore.open(control_url).close()
    engine = make_engine(control_url)
    with engine.begin() as connection:
        for statement in (
            "ALTER TABLE attempts DROP COLUMN scope",
            "DROP TABLE holds",
            f"UPDATE tidemark_schema SET version = {SCHEMA_VERSION - 1}",
        ):
            connection.execute(text(statement)).close()
    with ControlStore.open(control_url) as store:
        assert store.attempts() == []
        assert store.holds() == {}
    with engine.begin() as connection:
        columns = {one["name"] for one in inspect(connection).get_columns("attempts")}
    engine.dispose()
    assert "scope" in columns

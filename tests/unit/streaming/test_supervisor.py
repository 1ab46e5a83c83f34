"""Streams that do not hold back each other, and that go on while their state is not recorded."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from sqlalchemy.exc import OperationalError

from spark_jobs.errors import LakehouseError, RefusedError
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.errors import LogUnreadableError
from spark_jobs.streaming import supervisor
from spark_jobs.streaming.supervisor import Flow, Supervisor, create_tables

NO_SPARK = cast(SparkSession, None)


class Query:
    """A query that runs until it is stopped."""

    def __init__(self) -> None:
        self.isActive = True
        self.lastProgress = None
        self.status = {"isTriggerActive": False}

    def stop(self) -> None:
        self.isActive = False


class Damaged:
    """A flow whose tables can be created at the given try."""

    definition = ""

    def __init__(self, name: str, *, tries: int, error: Exception) -> None:
        self.name = name
        self.tries = tries
        self.error = error

    def create_tables(self, spark: SparkSession) -> None:
        self.tries -= 1
        if self.tries:
            raise self.error

    def start(self, spark: SparkSession) -> StreamingQuery:
        return cast(StreamingQuery, Query())

    def diagnose(self, error: Exception) -> LakehouseError | None:
        return None

    def watch(self, ids: dict[str, str]) -> LakehouseError | None:
        return None


@pytest.mark.parametrize(
    "error", [LogUnreadableError("/lake/bronze/a", "torn"), ValueError("Spark refuses the SELECT")]
)
def test_a_table_that_cannot_be_created_is_reported_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    for name in ("BEAT_SECONDS", "WAIT_SECONDS", "LONGEST_PAUSE_SECONDS", "REPORT_SECONDS"):
        monkeypatch.setattr(supervisor, name, 0.01)
    sound, torn = (Damaged(name, tries=n, error=error) for name, n in (("a", 1), ("b", 3)))
    flows: list[Flow] = [torn, sound]
    stopping, seen = threading.Event(), set[tuple[str, str, str]]()
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:

        def beat() -> None:
            for one in store.progress():
                seen.add((one.query, str(one.state), (one.error or "").partition("\n")[0]))
            if {("a", "running", ""), ("b", "running", "")} <= seen:
                stopping.set()

        fresh = create_tables(flows, NO_SPARK)
        assert fresh == {"b"}
        ended = Supervisor(
            NO_SPARK,
            store,
            flows,
            refused=RefusedError,
            fresh=fresh,
            stopping=stopping,
            beat=beat,
        ).run()
    assert ended
    assert any(name == "b" and "running" not in state and told for name, state, told in seen)


def test_queries_go_on_while_the_control_database_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "BEAT_SECONDS", 0.01)
    flow = Damaged("a", tries=1, error=ValueError())
    stopping = threading.Event()
    beats, failed, started = list[int](), list[int](), list[StreamingQuery]()

    def start(spark: SparkSession) -> StreamingQuery:
        started.append(query := cast(StreamingQuery, Query()))
        return query

    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        monkeypatch.setattr(flow, "start", start)
        recorded = store.record_reports

        def refused(reports: object) -> None:
            failed.append(1)
            if len(failed) > 5:
                monkeypatch.setattr(store, "record_reports", recorded)
            raise OperationalError("UPDATE", {}, Exception("the database system is shutting down"))

        def beat() -> None:
            beats.append(1)
            if len(beats) == 2:
                monkeypatch.setattr(store, "record_reports", refused)
            if len(beats) > 4:
                stopping.set()

        one = Supervisor(
            NO_SPARK, store, [flow], refused=RefusedError, stopping=stopping, beat=beat
        )
        assert one.run()
        assert (len(started), len(failed)) == (1, 6)
        assert [str(row.state) for row in store.progress()] == ["stopped"]


@pytest.mark.parametrize("fault", ["watch", "topic_ids"])
def test_a_check_of_topics_that_fails_ends_no_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(supervisor, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(supervisor, "WATCH_SECONDS", 0.0)
    flow = Damaged("a", tries=1, error=ValueError())
    stopping, checks = threading.Event(), list[int]()

    def broken(*_: object) -> None:
        checks.append(1)
        if len(checks) > 1:
            stopping.set()
        raise ValueError("a file is torn")

    if fault == "watch":
        monkeypatch.setattr(flow, "watch", broken)
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as store:
        one = Supervisor(
            NO_SPARK,
            store,
            [flow],
            refused=RefusedError,
            topic_ids=dict if fault == "watch" else cast(Any, broken),
            stopping=stopping,
        )
        assert one.run()
    assert len(checks) == 2

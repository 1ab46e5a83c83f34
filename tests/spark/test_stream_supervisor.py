"""The supervisor of streams by itself: real queries, which do nothing but run and fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.errors import LakehouseError
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.streaming import supervisor
from spark_jobs.streaming.supervisor import Declared, Flow, Supervisor

SECONDS = 120
ROW = "CAST(value AS STRING) AS value"
FAILING_ROW = "RAISE_ERROR('this row does not pass') AS value"


class AbsentError(LakehouseError):
    condition = "ABSENT"
    primary: str


class DecisionNeededError(LakehouseError):
    condition = "DECISION_NEEDED"
    primary: str
    hint: str | None = None


class Ticking:
    """A query over Spark's clock; a plan says what each of its starts does, the last one stays.

    Attributes:
        plan: an expression for the query's one column, or an error that the start raises.
        diagnosis: what a failure of the query means, or what goes wrong in finding out.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        *plan: str | Exception,
        diagnosis: Exception | None = None,
        definition: str = "as it was",
    ) -> None:
        self.name = name
        self.definition = definition
        self.tables = 0
        self.plan = plan or (ROW,)
        self.diagnosis = diagnosis
        self.starts = 0
        self._checkpoint = str(folder / name)

    def create_tables(self, spark: SparkSession) -> None:
        self.tables += 1

    def start(self, spark: SparkSession) -> StreamingQuery:
        step = self.plan[min(self.starts, len(self.plan) - 1)]
        self.starts += 1
        if isinstance(step, Exception):
            raise step
        rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load().selectExpr(step)
        writer = rows.writeStream.format("noop").option("checkpointLocation", self._checkpoint)
        return writer.queryName(self.name).trigger(processingTime="100 milliseconds").start()

    def diagnose(self, error: Exception) -> LakehouseError | None:
        if self.diagnosis is None or isinstance(self.diagnosis, LakehouseError):
            return self.diagnosis
        raise self.diagnosis

    def watch(self, ids: dict[str, str]) -> LakehouseError | None:
        return DecisionNeededError("another topic") if ids.get(self.name) == "another" else None


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BEAT", "WATCH", "WAIT", "LONGEST_PAUSE"):
        monkeypatch.setattr(supervisor, f"{name}_SECONDS", 0.1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    with ControlStore.open(f"sqlite:///{tmp_path}/control.db") as opened:
        yield opened


@pytest.fixture
def supervise(spark: SparkSession, store: ControlStore):
    """Runs flows for the length of a block; gives a function that tells a flow's row."""

    @contextmanager
    def running(
        *flows: Flow,
        topic_ids: Callable[[], dict[str, str]] | None = None,
        declared: Callable[[], Declared | None] | None = None,
    ) -> Iterator[Callable[[str], StreamProgress | None]]:
        def row(name: str) -> StreamProgress | None:
            return next((one for one in store.progress() if one.query == name), None)

        one = Supervisor(
            spark,
            store,
            flows,
            refused=DecisionNeededError,
            topic_ids=topic_ids,
            number=1,
            declared=declared,
        )
        thread = threading.Thread(target=one.run)
        thread.start()
        try:
            yield row
        finally:
            one.stopping.set()
            thread.join(SECONDS)
        assert not thread.is_alive()
        assert not {query.name for query in spark.streams.active} & {flow.name for flow in flows}

    return running


class Looking(Ticking):
    """Notes, when it is started, what the store says of another query."""

    seen: list[StreamState]

    def __init__(self, name: str, folder: Path, store: ControlStore, other: str) -> None:
        super().__init__(name, folder)
        self.seen = []
        self._store, self._other = store, other

    def start(self, spark: SparkSession) -> StreamingQuery:
        self.seen += [one.state for one in self._store.progress() if one.query == self._other]
        return super().start(spark)


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def runs(row: StreamProgress | None) -> bool:
    """Whether the query has ended a batch and goes on."""
    return row is not None and row.state is StreamState.RUNNING and row.batch_id >= 0


def test_queries_run_and_report_until_they_are_stopped(supervise, store, tmp_path) -> None:
    with supervise(Ticking("a", tmp_path), Ticking("b", tmp_path)) as row:
        wait_until(lambda: runs(row("a")) and runs(row("b")))
        seen = row("a").batch_id
        wait_until(lambda: row("a").batch_id > seen)
    assert {one.query: one.state for one in store.progress()} == {
        "a": StreamState.STOPPED,
        "b": StreamState.STOPPED,
    }


def test_a_failed_query_is_restarted_and_the_others_continue(supervise, tmp_path) -> None:
    failing = Ticking("failing", tmp_path, FAILING_ROW, RuntimeError("not yet"), ROW)
    steady = Ticking("steady", tmp_path)
    with supervise(failing, steady) as row:
        wait_until(lambda: failing.starts == 3 and runs(row("failing")) and runs(row("steady")))
        assert row("failing").error is None
    assert steady.starts == 1


def test_a_refused_query_stays_refused_and_says_why(supervise, store, tmp_path) -> None:
    refused = Ticking("refused", tmp_path, DecisionNeededError("what now", hint="Decide."))
    steady = Ticking("steady", tmp_path)
    with supervise(refused, steady) as row:
        wait_until(lambda: runs(row("steady")))
        assert row("refused").state is StreamState.REFUSED
    assert refused.starts == 1
    found = {one.query: one for one in store.progress()}["refused"]
    assert (found.state, found.error) == (StreamState.REFUSED, refused.plan[0].render())


def test_a_query_waits_for_a_missing_topic(supervise, tmp_path) -> None:
    late = Ticking("late", tmp_path, *[AbsentError("no topic")] * 20, ROW)
    with supervise(late) as row:
        wait_until(lambda: row("late") and row("late").state is StreamState.WAITING)
        wait_until(lambda: runs(row("late")))
    assert late.starts == 21


def test_the_diagnosis_of_a_failure_decides_what_follows(supervise, tmp_path) -> None:
    told = Ticking("told", tmp_path, FAILING_ROW, diagnosis=DecisionNeededError("records are gone"))
    with supervise(told) as row:
        wait_until(lambda: row("told") and row("told").state is StreamState.REFUSED)
        assert "[DECISION_NEEDED]" in row("told").error


def test_a_failure_that_cannot_be_diagnosed_is_one_like_any_other(supervise, tmp_path) -> None:
    unclear = Ticking("unclear", tmp_path, FAILING_ROW, ROW, diagnosis=TimeoutError())
    with supervise(unclear) as row:
        wait_until(lambda: unclear.starts == 2 and runs(row("unclear")))


def test_a_running_query_whose_topic_is_another_is_refused(supervise, tmp_path) -> None:
    ids: dict[str, str] = {}

    def ask() -> dict[str, str]:
        if not ids:
            raise AbsentError("no broker")
        return ids

    with supervise(Ticking("a", tmp_path), Ticking("b", tmp_path), topic_ids=ask) as row:
        wait_until(lambda: runs(row("a")) and runs(row("b")))
        ids.update(a="another", b="known")
        wait_until(lambda: row("a").state is StreamState.REFUSED)
        assert row("b").state is StreamState.RUNNING


def test_a_driver_on_which_nothing_runs_is_given_up(
    spark: SparkSession, store: ControlStore, tmp_path: Path
) -> None:
    lost = [Ticking(name, tmp_path, RuntimeError("no JVM")) for name in ("a", "b")]
    assert not Supervisor(spark, store, lost, refused=DecisionNeededError).run()
    assert {flow.starts for flow in lost} == {supervisor.HOPELESS_FAILURES}
    assert {one.state for one in store.progress()} == {StreamState.FAILED}


def test_each_round_beats_for_what_runs_beside_the_queries(store: ControlStore) -> None:
    beats: list[bool] = []
    one = Supervisor(None, store, [], refused=DecisionNeededError)
    one.beat = lambda: (beats.append(True), len(beats) > 2 and one.stopping.set())
    assert one.run()
    assert len(beats) == 3


def test_one_query_that_runs_is_reason_to_go_on(supervise, tmp_path) -> None:
    lost = Ticking("lost", tmp_path, RuntimeError("no such host"))
    with supervise(lost, Ticking("steady", tmp_path)) as row:
        wait_until(lambda: lost.starts > supervisor.HOPELESS_FAILURES and runs(row("steady")))
        assert row("lost").state is StreamState.FAILED


class Meeting(Ticking):
    """Starts only when another query starts at the same time."""

    def __init__(self, name: str, folder: Path, meeting: threading.Barrier) -> None:
        super().__init__(name, folder)
        self._meeting = meeting

    def start(self, spark: SparkSession) -> StreamingQuery:
        self._meeting.wait(SECONDS)
        return super().start(spark)


def test_queries_start_at_the_same_time(supervise, tmp_path: Path) -> None:
    meeting = threading.Barrier(2)
    with supervise(Meeting("a", tmp_path, meeting), Meeting("b", tmp_path, meeting)) as row:
        wait_until(lambda: runs(row("a")) and runs(row("b")))


def test_the_state_of_an_earlier_run_is_reset_at_the_start(
    supervise, store: ControlStore, tmp_path: Path
) -> None:
    long_ago = utc_now() - timedelta(hours=1)
    store.record_heartbeat("later", at=long_ago, state=StreamState.STOPPED)
    first = Looking("first", tmp_path, store, "later")
    with supervise(first, Ticking("later", tmp_path)) as row:
        wait_until(lambda: (found := row("later")) and found.state is StreamState.RUNNING)
    assert first.seen == [StreamState.STARTING]


def test_only_what_is_declared_otherwise_is_started_and_stopped(supervise, tmp_path: Path):
    stays, goes, was = (Ticking(name, tmp_path) for name in ("stays", "goes", "changes"))
    same = Ticking("stays", tmp_path)
    now = Ticking("changes", tmp_path, definition="otherwise")
    fresh = Ticking("fresh", tmp_path)
    news: list[Declared] = []
    with supervise(stays, goes, was, declared=lambda: news.pop() if news else None) as row:
        wait_until(
            lambda: all(state(row, name) == "running" for name in ("stays", "goes", "changes"))
        )
        news.append(Declared(2, [same, now, fresh]))
        wait_until(lambda: all(number(row, name) == 2 for name in ("stays", "changes", "fresh")))
        wait_until(lambda: all(state(row, name) == "running" for name in ("changes", "fresh")))
        assert row("goes") is None

    assert (stays.starts, same.starts) == (1, 0)
    assert (was.starts, now.starts, now.tables) == (1, 1, 1)
    assert (fresh.starts, fresh.tables) == (1, 1)


def test_a_deployment_that_cannot_be_read_stops_nothing(supervise, tmp_path: Path):
    one = Ticking("one", tmp_path)

    def unreadable() -> Declared | None:
        raise RuntimeError("no control database")

    with supervise(one, declared=unreadable) as row:
        wait_until(lambda: state(row, "one") == "running")
    assert one.starts == 1


def state(row: Callable[[str], StreamProgress | None], name: str) -> str | None:
    found = row(name)
    return found.state.value if found else None


def number(row: Callable[[str], StreamProgress | None], name: str) -> int | None:
    found = row(name)
    return found.deployment if found else None

"""What an apply waits for, over a control database in which streams report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from deltalake import write_deltalake

from spark_jobs.deploy.errors import StepFailedError
from spark_jobs.deploy.steps import Step
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.compile import compile_project
from spark_jobs.names import TableName
from spark_jobs.rollout import capture
from spark_jobs.rollout.planning import running_now
from spark_jobs.rollout.steps import ROWS_SECONDS, STREAM_SECONDS, Carrier
from spark_jobs.settings import Settings, load_settings
from spark_jobs.silver.errors import SourceDatabaseUnsetError
from spark_jobs.stack import kafka_rights
from spark_jobs.stack.connector import signal_config, signal_file
from spark_jobs.stack.errors import ConnectorFailedError
from spark_jobs.stack.snapshot_signal import ask_for_rows
from spark_jobs.state.batches import SilverBatch
from spark_jobs.state.deployments import OPEN, Deployment, DeploymentStatus
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.progress import StreamProgress, StreamState
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.lake import Lake
from tests.golden.declaration_cases import write_project

DEPLOYMENT = Deployment(deployment_id="d2-tests", number=2, who="tests", manifest="{}")
STREAM = Step.parse("stream bronze.orders")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / "shop"
    folder.mkdir()
    return load_settings(write_project(folder, {}), state_dir=tmp_path / "state")


@pytest.fixture
def store(settings: Settings) -> Iterator[ControlStore]:
    with ControlStore.open(settings.control_url) as opened:
        yield opened


def report(
    store: ControlStore,
    query: str,
    state: StreamState = StreamState.RUNNING,
    *,
    deployment: int | None = None,
    error: str | None = None,
    ends: dict[str, int] | None = None,
) -> None:
    now = utc_now()
    store.record_progress(
        StreamProgress(
            query=query,
            batch_id=0,
            records=0,
            at=now,
            heartbeat_at=now,
            state=state,
            deployment=deployment,
            error=error,
            end_offsets=None if ends is None else {"shop.public.orders": ends},
        )
    )


class Waiting:
    """A carrier whose waiting is counted, and filled with what happens meanwhile."""

    def __init__(
        self, settings: Settings, store: ControlStore, *happens: Callable[[], None]
    ) -> None:
        self.seconds = 0.0
        self.happens = list(happens)
        self.notes: list[str] = []
        manifest = compile_project(settings.project_dir)
        self.carrier = Carrier(
            settings, store, manifest, clock=lambda: self.seconds, sleep=self.sleep
        )

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds if self.happens else STREAM_SECONDS
        if self.happens:
            self.happens.pop(0)()

    def carry(self, step: Step) -> str | None:
        return self.carrier.carry(step, DEPLOYMENT, self.notes.append)


def test_streams_that_do_not_run_are_not_waited_for(
    settings: Settings, store: ControlStore
) -> None:
    waiting = Waiting(settings, store)

    assert "do not run" in (waiting.carry(STREAM) or "")
    assert waiting.carry(Step.parse("stop bronze.gone")) is None
    report(store, "bronze.orders", StreamState.STOPPED)
    assert "do not run" in (waiting.carry(STREAM) or "")


def test_a_stream_is_waited_for_until_it_runs_as_applied(
    settings: Settings, store: ControlStore
) -> None:
    report(store, "bronze.orders", deployment=1)
    waiting = Waiting(
        settings,
        store,
        lambda: report(store, "bronze.orders", StreamState.STARTING, deployment=2),
        lambda: report(store, "bronze.orders", deployment=2),
    )

    assert waiting.carry(STREAM) is None
    assert waiting.notes == ["the streams have not taken it up yet", "is starting"]


def test_a_stream_that_refuses_ends_the_step_with_its_reason(
    settings: Settings, store: ControlStore
) -> None:
    report(store, "bronze.orders", StreamState.REFUSED, deployment=2, error="records are lost")
    with pytest.raises(StepFailedError) as caught:
        Waiting(settings, store).carry(STREAM)

    assert caught.value.problem == "records are lost"


def test_waiting_has_an_end(settings: Settings, store: ControlStore) -> None:
    report(store, "bronze.orders", deployment=1)
    with pytest.raises(StepFailedError) as caught:
        Waiting(settings, store).carry(STREAM)

    assert "not taken it up yet after 300 s" in caught.value.problem


def test_a_stream_that_ends_is_waited_for(settings: Settings, store: ControlStore) -> None:
    report(store, "bronze.orders", deployment=2)
    report(store, "bronze.gone", deployment=1)
    waiting = Waiting(settings, store, lambda: store.forget_query("bronze.gone"))

    assert waiting.carry(Step.parse("stop bronze.gone")) is None
    assert waiting.notes == ["still runs"]


def test_tables_are_captured_again_once_the_manifest_is_in_force(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start of the stack in between registers the connector with the tables of before."""
    asked: list[int | None] = []
    monkeypatch.setattr(
        "spark_jobs.rollout.steps.capture_tables", lambda *_: asked.append(store.number_in_force())
    )
    store.begin_deployment(DEPLOYMENT)
    waiting = Waiting(settings, store)
    waiting.carry(Step.parse("connector shop.public.orders"))
    waiting.carry(Step.parse("manifest"))
    assert asked == [None, 2]
    # Without such a step, Kafka Connect need not run.
    Waiting(settings, store).carry(Step.parse("manifest"))
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("kind", "target", "granted"),
    [
        ("sink", "kafka: {topic: spent}", 1),
        ("gold", "kafka: {topic: spent}", 0),
        ("sink", 'redis: {prefix: "spend:"}', 0),
    ],
)
def test_a_new_sink_may_write_before_it_runs(
    settings: Settings,
    store: ControlStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    kind: str,
    target: str,
    granted: int,
) -> None:
    """With security a topic is closed to a sink that was never granted it."""
    told: list[int | None] = []
    secured = settings.security.model_copy(update={"enabled": True})
    monkeypatch.setattr(kafka_rights, "admin", lambda _: None)
    monkeypatch.setattr(kafka_rights, "grant", lambda *_: told.append(store.number_in_force()))
    view = settings.project_dir / "sql/gold/spend.sql"
    sinks = f"sinks:\n  - {target}\n"
    view.write_text(view.read_text().replace("every: 15 minutes\n", f"every: 15 minutes\n{sinks}"))
    waiting = Waiting(settings.model_copy(update={"security": secured}), store)
    changes = [{"kind": kind, "name": name} for name in waiting.carrier.manifest.sinks]
    deployment = replace(DEPLOYMENT, plan={"changes": changes})
    store.begin_deployment(deployment)
    waiting.carrier.carry(Step.parse("manifest"), deployment, waiting.notes.append)
    assert told == [None] * granted


BUILD = Step.parse("build gold.spend")


def pin(store: ControlStore) -> None:
    reason = "wrong rates"
    store.pin_view(
        PinnedView(view="spend", version=3, who="ann", reason=reason, replay_id="rollback-1")
    )


def test_a_pinned_view_is_not_said_to_be_computed(settings: Settings, store: ControlStore) -> None:
    pin(store)

    assert "tidemark release spend" in (Waiting(settings, store).carry(BUILD) or "")


def test_a_pinned_view_of_the_streams_is_not_waited_for(
    settings: Settings, store: ControlStore
) -> None:
    view = settings.project_dir / "sql/gold/spend.sql"
    text = view.read_text().replace("micro-batch\nevery: 15 minutes", "continuous")
    view.write_text(text)
    report(store, "bronze.orders")
    pin(store)
    waiting = Waiting(settings, store)

    assert "tidemark release spend" in (waiting.carry(BUILD) or "")
    assert waiting.seconds == 0


def test_a_view_that_a_replay_is_about_to_publish_stays_open(
    settings: Settings, store: ControlStore
) -> None:
    with (
        store.lease("recompute/gold.spend", owner="replay r1", seconds=600),
        pytest.raises(StepFailedError) as caught,
    ):
        Waiting(settings, store).carry(BUILD)

    assert "replay r1 is about to publish" in caught.value.problem


def test_a_view_whose_input_is_missing_is_told(settings: Settings, store: ControlStore) -> None:
    assert "silver.orders" in (Waiting(settings, store).carry(BUILD) or "")


def test_records_of_a_dropped_table_do_not_count_as_taken_up(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.rollout.steps.topic_records", lambda *_: 3)
    report(store, "bronze.orders")

    def counted(records: int, *, epoch: int) -> None:
        store.record_silver_batch(
            SilverBatch(silver="orders", epoch=epoch, batch_id=0, records=records, at=utc_now())
        )

    counted(5, epoch=1)
    epoch = store.bump_epoch("silver.orders", reason="dropped")
    waiting = Waiting(settings, store, lambda: counted(3, epoch=epoch))

    assert waiting.carry(Step.parse("take up silver.orders")) is None
    assert waiting.notes == ["0 of 3 records"]


def test_records_that_kafka_deleted_before_are_not_waited_for(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source was dropped and declared again; its topic lost the older records meanwhile."""
    monkeypatch.setattr("spark_jobs.rollout.steps.topic_records", lambda *_: 1003)
    bronze = Lake(settings.lake).location(TableName.parse("bronze.orders"))

    def counted(number: int, records: int) -> None:
        batch = SilverBatch(
            silver="orders", epoch=1, batch_id=number, records=records, at=utc_now()
        )
        store.record_silver_batch(batch)

    def landed() -> None:
        report(store, "bronze.orders", ends={"0": 3, "1": 1000})
        write_deltalake(bronze, pa.table({"offset": [1000, 1001, 1002]}))

    report(store, "bronze.orders", ends={"0": 3, "1": 998})
    counted(0, 1)
    waiting = Waiting(settings, store, landed, lambda: counted(1, 2))

    assert waiting.carry(Step.parse("take up silver.orders")) is None
    assert waiting.notes == ["1 of 1,003 records", "1 of 3 records"]


SNAPSHOT = Step.parse("snapshot orders")


@pytest.mark.parametrize(("rows", "wanted"), [(0, []), (2, ["public.orders"])])
def test_an_empty_table_needs_no_snapshot(
    settings: Settings,
    store: ControlStore,
    monkeypatch: pytest.MonkeyPatch,
    *,
    rows: int,
    wanted: list[str],
) -> None:
    """It is counted once the connector captures it: rows may have come since the plan."""
    records, asked = iter([0, 0, 2]), list[str]()
    monkeypatch.setattr(capture, "topic_records", lambda *_: next(records))
    monkeypatch.setattr(capture, "_count", lambda *_: rows)
    monkeypatch.setattr(capture, "move_log", lambda _: None)
    monkeypatch.setattr(capture, "ask_for_rows", lambda _, table, **__: asked.append(table))
    waiting = Waiting(settings, store, lambda: None, lambda: None)

    assert waiting.carry(SNAPSHOT) is None
    assert asked == wanted


def test_a_large_table_is_waited_for_as_long_as_its_rows_come(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try that ended would ask for all of its rows again."""
    records, asked = iter([0, 0, 1, 2, 3]), list[str]()
    monkeypatch.setattr(capture, "topic_records", lambda *_: next(records))
    monkeypatch.setattr(capture, "_count", lambda *_: 3)
    monkeypatch.setattr(capture, "move_log", lambda _: None)
    monkeypatch.setattr(capture, "ask_for_rows", lambda _, table, **__: asked.append(table))
    waiting = Waiting(settings, store)

    def later() -> None:
        waiting.seconds += 0.9 * ROWS_SECONDS

    waiting.happens = [later, later, later]
    assert waiting.carry(SNAPSHOT) is None
    assert waiting.notes == [f"{number} of 3 rows" for number in range(3)]
    assert asked == ["public.orders"]


def test_a_database_that_does_not_answer_fails_the_step(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "topic_records", lambda *_: 0)
    away = settings.model_copy(update={"source_database": "postgresql://a@127.0.0.1:1/shop"})
    with pytest.raises(StepFailedError) as caught:
        Waiting(away, store).carry(SNAPSHOT)

    assert "public.orders" in caught.value.problem


def test_a_table_is_read_although_the_database_restarts_meanwhile(
    settings: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, asked, moved = iter([0, 0, 2, 3]), list[str](), iter([True, False])

    def count(_: Settings, table: str) -> int:
        # The source names none: it is the one that the topic is named after.
        assert table == "public.orders"
        return 3

    def move_log(_: Settings) -> None:
        if next(moved):
            raise psycopg.OperationalError("the system is shutting down")

    monkeypatch.setattr(capture, "topic_records", lambda *_: next(arrived))
    monkeypatch.setattr(capture, "_count", count)
    monkeypatch.setattr(capture, "move_log", move_log)
    monkeypatch.setattr(capture, "ask_for_rows", lambda _, table, **__: asked.append(table))
    waiting = Waiting(settings, store, lambda: None, lambda: None)

    assert waiting.carry(SNAPSHOT) is None
    assert asked == ["public.orders"]
    assert waiting.notes == [
        "0 of 3 rows; the source database does not answer: the system is shutting down.",
        "2 of 3 rows",
    ]


@pytest.fixture
def elsewhere(settings: Settings, store: ControlStore) -> Settings:
    """Settings of an external Kafka Connect, and a deployment that captures the table."""
    store.begin_deployment(replace(DEPLOYMENT, in_force=True, steps={str(SNAPSHOT): OPEN}))
    external = settings.kafka_connect.model_copy(update={"url": "http://connect:8083"})
    return settings.model_copy(update={"kafka_connect": external})


def test_rows_behind_an_external_connect_wait_for_a_new_snapshot(
    elsewhere: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = iter([0, 1, 2])
    monkeypatch.setattr(capture, "topic_records", lambda *_: next(records))
    monkeypatch.setattr(capture, "_count", lambda *_: 2)
    waiting = Waiting(elsewhere, store, lambda: settled(store), lambda: None)

    assert waiting.carry(SNAPSHOT) is None
    assert waiting.notes == [
        "2 rows of public.orders wait for `tidemark source resnapshot --run --reason TEXT`",
        "1 of 2 rows",
    ]


def settled(store: ControlStore) -> None:
    found = capture.settle_snapshots(store)
    assert found is not None
    assert found.deployment_id == DEPLOYMENT.deployment_id


def test_a_snapshot_between_two_applies_counts(elsewhere: Settings, store: ControlStore) -> None:
    """Its rows arrived before the second apply looked."""
    store.end_deployment(DEPLOYMENT.deployment_id, status=DeploymentStatus.FAILED)
    settled(store)
    assert SNAPSHOT not in running_now(store, compile_project(elsewhere.project_dir)).open_steps
    assert Waiting(elsewhere, store).carry(SNAPSHOT) is None
    assert capture.settle_snapshots(store) is None


def test_a_snapshot_before_the_table_is_captured_does_not_count(store: ControlStore) -> None:
    store.begin_deployment(replace(DEPLOYMENT, steps={str(SNAPSHOT): OPEN}))
    assert capture.settle_snapshots(store) is None


def test_rows_of_an_unknown_database_are_not_passed_over(
    elsewhere: Settings, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "topic_records", lambda *_: 0)
    with pytest.raises(SourceDatabaseUnsetError):
        Waiting(elsewhere, store).carry(SNAPSHOT)


def test_rows_are_asked_for_by_a_line_of_a_file(settings: Settings, tmp_path: Path) -> None:
    config = signal_config(settings)
    for request in ("one", "two"):
        ask_for_rows(settings, "public.tellers", request=request, connector="shop")
    path = signal_file(settings)

    assert config["signal.file"] == str(path)
    # It writes nothing to the database.
    assert config["read.only"] == "true"
    lines = path.read_text().splitlines()
    assert len(lines) == 2
    assert r'"public\\.tellers"' in lines[0]
    assert path.stat().st_mode & 0o077 == 0


def test_a_worker_elsewhere_cannot_be_asked(tmp_path: Path) -> None:
    settings = load_settings(tmp_path, kafka_connect={"url": "http://connect:8083"})

    assert signal_config(settings) == {}
    with pytest.raises(ConnectorFailedError):
        ask_for_rows(settings, "public.tellers", request="one", connector="shop")


def test_a_broker_that_is_away_is_named_with_its_remedy(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT, "Broker transport failure"))

    monkeypatch.setattr(capture, "ensure_topics", away)
    monkeypatch.setattr(capture, "records_in", away)
    for asked in (
        lambda: capture.add_topic(settings, compile_project(settings.project_dir), "clicks"),
        lambda: capture.topic_records(settings, "clicks"),
    ):
        with pytest.raises(LakehouseError) as caught:
            asked()
        assert caught.value.condition == "KAFKA_UNREACHABLE"
        assert "make up" in caught.value.hint

"""Steps of an apply in Kafka and Kafka Connect: topics, captured tables, snapshots."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
from confluent_kafka import KafkaException

from spark_jobs.access import timeouts
from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.bronze.errors import failure
from spark_jobs.deploy.errors import StepFailedError
from spark_jobs.deploy.steps import Step, StepKind
from spark_jobs.errors import LakehouseError, first_line
from spark_jobs.graph.manifest import Manifest, SourceEntry
from spark_jobs.serving.source_dsn import source_dsn
from spark_jobs.settings import Settings
from spark_jobs.silver.errors import SourceDatabaseUnsetError
from spark_jobs.stack.connect import register
from spark_jobs.stack.connector import CONNECTOR, MESSAGE_PREFIX, captured_table, captured_tables
from spark_jobs.stack.disconnect import disconnect
from spark_jobs.stack.kafka import ensure_topics, records_in
from spark_jobs.stack.kafka_rights import grant_declared
from spark_jobs.stack.snapshot_signal import ask_for_rows
from spark_jobs.state.deployments import Deployment
from spark_jobs.state.store import ControlStore

ASK_AGAIN_SECONDS = 45.0
RESNAPSHOT = "tidemark source resnapshot"
# Polls a function until it returns None, and shows what it returns.
Waiter = Callable[[Callable[[], str | None]], None]


def add_topic(settings: Settings, manifest: Manifest, topic: str) -> None:
    """Create a topic unless it exists, and grant clients access.

    Raises:
        KafkaUnreachableError: no broker answers.
        LoginRefusedError: it refuses the login, as ``failure`` says of other refusals.
    """
    try:
        ensure_topics(settings, [topic])
    except KafkaException as error:
        raise _unanswered(settings, error) from error
    grant_rights(settings, manifest)


def grant_rights(settings: Settings, manifest: Manifest) -> None:
    """Grant clients access to the topics of a manifest, and to no others.

    Raises:
        KafkaUnreachableError: no broker answers.
        LoginRefusedError: it refuses the login, as ``failure`` says of other refusals.
    """
    try:
        grant_declared(settings, manifest)
    except KafkaException as error:
        raise _unanswered(settings, error) from error


def capture_tables(settings: Settings, manifest: Manifest) -> str | None:
    """Make the connector capture all tables of the manifest; without any, delete it.

    Returns:
        what became of its slot, as a message for the user; or None.

    Raises:
        ConnectorFailedError: Connect rejects the request, does not answer, or the connector fails.
    """
    if not captured_tables(manifest):
        return disconnect(settings)
    register(settings, manifest)
    return None


def read_rows(
    settings: Settings,
    source: SourceEntry,
    *,
    request: str,
    taken: Callable[[], bool],
    wait: Waiter,
) -> None:
    """Request a snapshot of a table, and wait until its rows are in the topic.

    A worker elsewhere reads no signals from here, so a person is asked for a new snapshot of all
    tables.

    It is enough that the topic has as many records as the table had rows: rows that are deleted
    meanwhile never arrive, and changes count too.

    Args:
        settings: project settings.
        source: declares the table.
        request: id of the request in the connector's log.
        taken: whether a person began a new snapshot of all tables; see ``settle_snapshots``.
        wait: waits for the rows.

    Raises:
        SourceDatabaseUnsetError: no setting names the database of the table.
        StepFailedError: the rows do not arrive in time, or the database refuses to count them.
    """
    if taken():
        return
    table, topic = captured_table(source), source.topic or ""
    before = topic_records(settings, topic)
    try:
        rows = _count(settings, table)
    except psycopg.Error as error:
        problem = f"the source database says of {table}: {first_line(str(error))}"
        raise StepFailedError(f"snapshot {source.name}", problem) from error
    if rows == 0:
        return
    asked: list[float] = []

    def lacks() -> str | None:
        if settings.kafka_connect.url and not taken():
            return f"{rows:,} rows of {table} wait for `{RESNAPSHOT} --run --reason TEXT`"
        arrived = topic_records(settings, topic) - before
        if arrived >= rows:
            return None
        progress = f"{max(0, arrived):,} of {rows:,} rows"
        if settings.kafka_connect.url:
            return progress
        # Repeat the request: a connector that was restarting may have missed it.
        if not asked or (arrived <= 0 and time.monotonic() - asked[-1] > ASK_AGAIN_SECONDS):
            name = f"{request}-{source.name}-{len(asked)}"
            ask_for_rows(settings, table, request=name, connector=CONNECTOR)
            asked.append(time.monotonic())
        try:
            move_log(settings)
        except psycopg.OperationalError as error:
            # It may be restarting; the next look asks again.
            return f"{progress}; the source database does not answer: {first_line(str(error))}"
        return progress

    wait(lacks)


def settle_snapshots(store: ControlStore) -> Deployment | None:
    """Record that a snapshot of all captured tables does the open snapshots of a deployment.

    Returns:
        the deployment; None if there is none that waits for one, or it has not captured its tables.
    """
    found = store.newest_deployment()
    if found is None or not (found.unfinished and found.in_force):
        return None
    steps = [one for one in found.open_steps if Step.parse(one).kind is StepKind.SNAPSHOT]
    if not steps:
        return None
    store.step_done(found.deployment_id, *steps)
    return found


def move_log(settings: Settings) -> None:
    """Commit an empty transaction, if the source database is known.

    The connector sends a chunk of rows once it sees a transaction that began after the chunk was
    read. In an idle database there would be none.
    """
    address = source_dsn(settings)
    if address is not None:
        with psycopg.connect(address, **timeouts.POSTGRES, autocommit=True) as connection:
            connection.execute("SELECT pg_logical_emit_message(true, %s, '')", [MESSAGE_PREFIX])


def topic_records(settings: Settings, topic: str) -> int:
    """The number of records that were ever written to a topic.

    Raises:
        KafkaUnreachableError: no broker answers, or the topic does not exist.
    """
    try:
        return records_in(settings, topic)
    except KafkaException as error:
        raise _unanswered(settings, error) from error


def _unanswered(settings: Settings, error: KafkaException) -> LakehouseError:
    """Why the brokers gave no answer: an error with its remedy."""
    return failure(kafka_access(settings, Principal.ADMIN), error.args[0])


def _count(settings: Settings, table: str) -> int:
    address = source_dsn(settings)
    if address is None:
        raise SourceDatabaseUnsetError
    name = psycopg.sql.Identifier(*table.split("."))
    with psycopg.connect(address, **timeouts.POSTGRES, autocommit=True) as connection:
        found = connection.execute(
            psycopg.sql.SQL("SELECT count(*) FROM {}").format(name)
        ).fetchone()
    return int(found[0]) if found else 0

"""``tidemark stream run``: the streaming application."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import typer

from spark_jobs.errors import LakehouseError, RefusedError
from spark_jobs.settings import Settings, load_settings

app = typer.Typer(no_args_is_help=True, help="Kafka to bronze, silver, continuous gold and sinks.")

APPLICATION = "streams"


class StreamsAlreadyRunningError(LakehouseError):
    """Another streaming application writes the same tables."""

    condition = "STREAMS_ALREADY_RUNNING"

    def __init__(self, detail: str | None) -> None:
        super().__init__(
            "another streaming application writes this lake",
            detail=detail,
            hint="One application serves all sources; stop that one first. Another stack needs "
            "a lake of its own: set lake_root.",
        )


@app.callback()
def streams() -> None:
    """Verbs about the streaming application."""


@app.command()
def run(context: typer.Context) -> None:
    """Keep all that follows a topic or a table up to date until the process is told to stop."""
    from spark_jobs.state.stopped import note_stopped

    settings = load_settings(context.obj)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    # It tells of every call that Spark makes back into this process.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        if number == signal.SIGINT:
            # By a person at the terminal; whatever supervises the process sends SIGTERM.
            note_stopped(settings.state)
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if not serve(settings, stopping):
        raise typer.Exit(1)


def serve(settings: Settings, stopping: threading.Event) -> bool:
    """Run every stream of the project; False where none can be kept running.

    Raises:
        StreamsAlreadyRunningError: another process does.
    """
    from spark_jobs.state.stopped import forget_stopped

    with sole_application(settings):
        forget_stopped(settings.state)
        return _serve(settings, stopping)


@contextmanager
def sole_application(settings: Settings) -> Iterator[None]:
    """Keep any other streaming application from starting on this lake.

    Raises:
        StreamsAlreadyRunningError: one runs.
    """
    from spark_jobs.state.errors import TableLockedError
    from spark_jobs.state.locks import table_lock
    from spark_jobs.storage.lake import lock_directory

    with ExitStack() as held:
        try:
            locks = lock_directory(settings.lake, settings.state)
            held.enter_context(table_lock(locks, APPLICATION))
        except TableLockedError as error:
            raise StreamsAlreadyRunningError(error.detail) from error
        yield


def _serve(settings: Settings, stopping: threading.Event) -> bool:
    from spark_jobs.access.kafka import Principal, kafka_access
    from spark_jobs.bronze.flow import BronzeFlow
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.definitions.vocabulary import SourceFormat
    from spark_jobs.gold.continuous import ContinuousGold
    from spark_jobs.graph.compile import compile_project
    from spark_jobs.local.serving import sink_addresses
    from spark_jobs.silver.flow import SilverFlow
    from spark_jobs.sinks.runner import SinkRunner, deliveries
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.compiled import current_manifest
    from spark_jobs.storage.session import driver_session
    from spark_jobs.storage.streams import streaming_conf
    from spark_jobs.storage.supervisor import Flow, Supervisor

    manifest = compile_project(settings.project_dir, limits=settings.graph)
    topics = Topics(kafka_access(settings, Principal.STREAMS))
    with ControlStore.open(settings.control_url) as store:
        landing: list[Flow] = [
            BronzeFlow(source, settings, topics)
            for source in manifest.sources.values()
            if source.format is not SourceFormat.DELTA
        ]
        applying: list[Flow] = [
            SilverFlow(manifest.sources[entry.source], entry, settings, store)
            for entry in manifest.silver.values()
            if manifest.sources[entry.source].format is not SourceFormat.DELTA
        ]
        spark = driver_session(settings, "tidemark streams", conf=streaming_conf(settings))
        work = deliveries(settings, manifest, lambda: sink_addresses(settings), spark=lambda: spark)
        sinks = SinkRunner(work, store, settings.sinks.trigger_seconds)
        try:
            sinks.start()
            flows = [*landing, *applying]
            for flow in flows:
                flow.create_tables(spark)
            known = [source.topic for source in manifest.sources.values() if source.topic]
            # Refreshes by hand and by schedule follow the compiled project; so does this one.
            compiled = current_manifest(settings.manifest_file, manifest)
            gold = ContinuousGold(settings, store, compiled, stopping)
            with gold.following(spark):
                return Supervisor(
                    spark,
                    store,
                    flows,
                    refused=RefusedError,
                    topic_ids=(lambda: topics.ids(known)) if known else None,
                    stopping=stopping,
                    beat=gold.report,
                ).run()
        finally:
            sinks.stop()
            spark.stop()

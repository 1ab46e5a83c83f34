"""The streaming application: all streams of a project in one driver; one application per lake."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from spark_jobs.errors import LakehouseError, RefusedError
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from spark_jobs.bronze.topics import Topics
    from spark_jobs.graph.manifest import Manifest
    from spark_jobs.silver.frontier import Frontiers
    from spark_jobs.state.store import ControlStore

APPLICATION = "streams"


class StreamsAlreadyRunningError(LakehouseError):
    """Another streaming application writes the same tables."""

    condition = "STREAMS_ALREADY_RUNNING"
    detail: str | None
    primary = "another streaming application is running on this lake"
    hint = (
        "One application serves all sources; stop the other one first. Another stack needs another "
        "lake: set lake_root."
    )


def serve(settings: Settings, stopping: threading.Event) -> bool:
    """Run all streams of the project; False if none can be kept running.

    Raises:
        StreamsAlreadyRunningError: another application is running.
    """
    from spark_jobs.state.stopped import forget_stopped

    with sole_application(settings):
        forget_stopped(settings.state)
        return _serve(settings, stopping)


@contextmanager
def sole_application(settings: Settings) -> Iterator[None]:
    """Hold the lock of the streaming application while the context lasts.

    Raises:
        StreamsAlreadyRunningError: another application holds it.
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
    from spark_jobs.gold.continuous.loop import ContinuousGold
    from spark_jobs.graph.compile import compile_project
    from spark_jobs.silver.flow import SilverFlow
    from spark_jobs.silver.frontier import Frontiers
    from spark_jobs.sinks.runner import SinkRunner, deliveries
    from spark_jobs.stack.sink_addresses import sink_addresses
    from spark_jobs.state.store import ControlStore
    from spark_jobs.storage.in_force import copy_in_force, current_manifest, manifest_of
    from spark_jobs.storage.streams import streaming_session
    from spark_jobs.streaming.deployed import Deployed
    from spark_jobs.streaming.supervisor import Flow, Supervisor, create_tables

    topics, frontiers = Topics(kafka_access(settings, Principal.STREAMS)), Frontiers()
    with ControlStore.open(settings.control_url) as store:

        def flows_of(manifest: Manifest) -> list[Flow]:
            landing = [
                BronzeFlow(source, settings, topics)
                for source in manifest.sources.values()
                if source.format.streamed
            ]
            applying = [
                SilverFlow(manifest.sources[entry.source], entry, settings, store, frontiers)
                for entry in manifest.silver.values()
                if manifest.sources[entry.source].format.streamed
            ]
            return [*landing, *applying]

        deployed = store.deployment_in_force()
        number = deployed.number if deployed else None
        applied = manifest_of(deployed)
        manifest = applied or compile_project(
            settings.project_dir, limits=settings.graph, variables=settings.variables
        )
        spark = streaming_session(settings)
        work = deliveries(settings, manifest, lambda: sink_addresses(settings), spark=lambda: spark)
        sinks = SinkRunner(work, store, settings.sinks.trigger_seconds)
        try:
            sinks.start()
            flows = flows_of(manifest)
            fresh = create_tables(flows, spark)

            def take_up(newer: Manifest) -> list[Flow]:
                copy_in_force(settings, newer)
                sinks.follow(
                    deliveries(
                        settings, newer, lambda: sink_addresses(settings), spark=lambda: spark
                    )
                )
                return flows_of(newer)

            running = Deployed(store, number, manifest, take_up)

            def topic_ids() -> dict[str, str]:
                sources = running.manifest.sources.values()
                known = [source.topic for source in sources if source.topic]
                return topics.ids(known) if known else {}

            # Continuous refreshes follow the compiled project, like all other refreshes.
            compiled = current_manifest(settings.manifest_file, manifest)
            gold = ContinuousGold(settings, store, compiled, stopping)
            with (
                _transactions(settings, store, topics, frontiers, compiled),
                gold.following(spark),
                _announcing(settings, store, compiled),
                _watching_connector(settings),
                _watching_clock(settings, stopping),
            ):
                return Supervisor(
                    spark,
                    store,
                    flows,
                    refused=RefusedError,
                    topic_ids=topic_ids,
                    stopping=stopping,
                    beat=gold.report,
                    starting=gold.report_starting,
                    fresh=fresh,
                    number=number,
                    declared=running.newer,
                ).run()
        finally:
            sinks.stop()
            spark.stop()


def _transactions(
    settings: Settings,
    store: ControlStore,
    topics: Topics,
    frontiers: Frontiers,
    manifest: Callable[[], Manifest],
) -> AbstractContextManager[None]:
    """Record versions that show whole transactions, for the duration of the block."""
    from spark_jobs.streaming.following import following_transactions

    return following_transactions(settings, store, topics, frontiers, manifest)


def _watching_connector(settings: Settings) -> AbstractContextManager[None]:
    """Restart the stack's connector after failures, for the duration of the block."""
    from spark_jobs.streaming.connector_watch import watching_connector

    return watching_connector(settings)


def _watching_clock(settings: Settings, stopping: threading.Event) -> AbstractContextManager[None]:
    """Restart after the host's clock was set back, for the duration of the block."""
    from spark_jobs.streaming.clock_watch import watching_clock

    return watching_clock(settings, stopping)


def _announcing(
    settings: Settings, store: ControlStore, manifest: Callable[[], Manifest]
) -> AbstractContextManager[None]:
    """Emit Airflow's asset events, for the duration of the block."""
    from spark_jobs.gold.base.context import GoldContext
    from spark_jobs.gold.telemetry.announcer import announcing
    from spark_jobs.stack.airflow_events import airflow_events

    return announcing(
        lambda: GoldContext(settings, manifest(), store), partial(airflow_events, settings)
    )

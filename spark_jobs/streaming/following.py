"""Wires up the recording of transaction frontiers for the streaming application."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spark_jobs.background import BackgroundLoop
from spark_jobs.bronze.commit_positions import CommitPositions
from spark_jobs.bronze.flow import BronzeFlow
from spark_jobs.bronze.topics import Topics
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings
from spark_jobs.silver.apply.batch import transaction_app
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.silver.frontier import Frontiers
from spark_jobs.state.store import ControlStore
from spark_jobs.streaming.cut_table import CutTable, Places
from spark_jobs.streaming.transactions import TransactionNotes

LOOK_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 60.0
STOP_SECONDS = 10.0


@contextmanager
def following_transactions(
    settings: Settings,
    store: ControlStore,
    topics: Topics,
    frontiers: Frontiers,
    manifest: Callable[[], Manifest],
) -> Iterator[None]:
    """Record versions that show whole transactions, while the context lasts.

    Args:
        settings: project settings.
        store: stores the versions.
        topics: queries Kafka.
        frontiers: shared with the streams of the silver tables.
        manifest: returns the current manifest.
    """

    def table(compiled: Manifest, name: str) -> CutTable:
        return cut_table(settings, store, topics, frontiers, compiled=compiled, name=name)

    positions = CommitPositions(topics.access, settings.kafka_connect.offsets_topic)
    notes = TransactionNotes(store, positions.newest, topics.ends, manifest, table)
    loop = BackgroundLoop(
        "transactions",
        notes.look,
        "transactions not followed",
        pause=LOOK_SECONDS,
        longest_pause=LONGEST_PAUSE_SECONDS,
        stop_seconds=STOP_SECONDS,
    )
    try:
        with loop:
            yield
    finally:
        positions.close()


def cut_table(
    settings: Settings,
    store: ControlStore,
    topics: Topics,
    frontiers: Frontiers,
    *,
    compiled: Manifest,
    name: str,
) -> CutTable:
    """The ``CutTable`` of one silver table."""
    entry = compiled.silver[name]
    source = compiled.sources[entry.source]
    bronze = BronzeFlow(source, settings, topics)
    silver = SilverFlow(source, entry, settings, store, frontiers)

    def recorded(batch_id: int) -> bool:
        epoch = store.epoch(silver.name)
        return store.silver_batch_recorded(name, epoch=epoch, batch_id=batch_id)

    places = Places(
        tables=silver.tables,
        topic=bronze.topic,
        bronze=bronze.table,
        bronze_checkpoint=lambda: bronze.checkpoint,
        silver_checkpoint=lambda: silver.checkpoint(store.epoch(silver.name)),
        app=lambda: transaction_app(entry, store.epoch(silver.name)),
        recorded=recorded,
    )
    return CutTable(places, frontiers.of(name))

"""What is in the services and in the lake, read without the project's own streaming code."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable
from psycopg import sql

from spark_jobs.graph.manifest import Manifest
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import Settings
from spark_jobs.storage.lake import Lake

Rows = list[tuple[object, ...]]


def kafka_ends(settings: Settings) -> dict[str, int]:
    """Records that each source's topic ever held."""
    manifest = Manifest.read(settings.manifest_file)
    options = {"bootstrap.servers": settings.kafka, "group.id": "oracle", "log_level": 0}
    consumer = Consumer(options)
    try:
        found = {}
        for source in manifest.sources.values():
            partitions = (
                consumer.list_topics(source.topic, timeout=20).topics[source.topic].partitions
            )
            ends = [
                consumer.get_watermark_offsets(TopicPartition(source.topic, one), timeout=20)[1]
                for one in partitions
            ]
            found[source.name] = sum(ends)
        return found
    finally:
        consumer.close()


def bronze_counts(settings: Settings) -> dict[str, int]:
    """Rows of each bronze table."""
    manifest = Manifest.read(settings.manifest_file)
    return {
        name: _count(Lake(settings.lake).location(TableName(Layer.BRONZE, name)))
        for name in manifest.sources
    }


def silver_count(settings: Settings, name: str) -> int:
    """Rows of a silver table."""
    return _count(Lake(settings.lake).location(TableName(Layer.SILVER, name)))


def quarantine_count(settings: Settings, name: str) -> int:
    """Rows of a silver table's quarantine."""
    return _count(Lake(settings.lake).quarantine(name))


def silver_rows(settings: Settings, name: str) -> Rows:
    """The rows of a silver table, in the columns of its SELECT."""
    entry = Manifest.read(settings.manifest_file).silver[name]
    table = DeltaTable(Lake(settings.lake).location(TableName(Layer.SILVER, name)))
    columns = [column.name for column in entry.columns]
    read = table.to_pyarrow_table(columns=columns).to_pylist()
    return sorted((tuple(row[column] for column in columns) for row in read), key=repr)


def postgres_rows(settings: Settings, shop: str, name: str) -> Rows:
    """The same rows in the source database."""
    entry = Manifest.read(settings.manifest_file).silver[name]
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in entry.columns)
    with psycopg.connect(shop) as connection:
        rows = connection.execute(
            sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(name))
        ).fetchall()
    return sorted((tuple(row) for row in rows), key=repr)


def wait_until(holds: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Ask again and again."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(2)


def _count(location: str) -> int:
    return DeltaTable(location).to_pyarrow_dataset().count_rows()

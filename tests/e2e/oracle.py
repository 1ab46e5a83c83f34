"""Reads services and lake without the project's streaming code."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg
import redis
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable
from psycopg import sql
from psycopg.rows import dict_row

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.graph.manifest import Manifest, SinkEntry
from spark_jobs.names import Layer, TableName
from spark_jobs.settings import Settings
from spark_jobs.storage.lake import Lake

Rows = list[tuple[object, ...]]
Row = dict[str, object]
Key = tuple[object, ...]
POLL_SECONDS = 0.5


def kafka_ends(settings: Settings) -> dict[str, int]:
    """Number of records ever written to each source's topic."""
    manifest = Manifest.read(settings.manifest_file)
    consumer = Consumer(_consumer(settings))
    try:
        found = {}
        for source in manifest.sources.values():
            ends = [
                consumer.get_watermark_offsets(one, timeout=20)[1]
                for one in _partitions(consumer, source.topic)
            ]
            found[source.name] = sum(ends)
        return found
    finally:
        consumer.close()


def kafka_counts(settings: Settings) -> dict[str, int]:
    """Number of committed records in each source's topic; reads all of them."""
    manifest = Manifest.read(settings.manifest_file)
    options = {"enable.partition.eof": True, "isolation.level": "read_committed"}
    consumer = Consumer({**_consumer(settings), **options})
    found = {}
    try:
        for source in manifest.sources.values():
            partitions = _partitions(consumer, source.topic)
            consumer.assign(partitions)
            count, ended = 0, 0
            while ended < len(partitions):
                # One by one: `consume` waits for its whole timeout.
                record = consumer.poll(20)
                assert record is not None, "the broker does not answer"
                if record.error() is None:
                    count += 1
                else:
                    ended += 1
            found[source.name] = count
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


def gold_rows(settings: Settings, view: str) -> dict[Key, Row]:
    """The rows of a published view, by their values in the sink's keys."""
    sink = next(one for one in _sinks(settings) if one.table == f"gold.{view}")
    table = DeltaTable(Lake(settings.lake).location(TableName(Layer.GOLD, view)))
    return {_key(row, sink): row for row in table.to_pyarrow_table().to_pylist()}


def served_rows(settings: Settings, dsn: str, table: str) -> dict[Key, Row]:
    """The rows of a sink's table in Postgres, by key."""
    sink = next(one for one in _sinks(settings) if one.target == table)
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(*table.split(".")))
        return {_key(row, sink): row for row in connection.execute(query)}


def redis_hashes(url: str, prefix: str) -> dict[str, dict[str, str]]:
    """The hashes under a prefix, by the rest of the key."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return {
            name.removeprefix(prefix): client.hgetall(name) for name in client.keys(f"{prefix}*")
        }


def topic_records(settings: Settings, topic: str) -> list[tuple[str, str | None]]:
    """Every committed record of a topic with one partition, as text, in its order."""
    consumer = Consumer({**_consumer(settings), "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        while (record := consumer.poll(20)) is not None and record.error() is None:
            value = record.value()
            found.append((record.key().decode(), None if value is None else value.decode()))
        assert record is not None, "the broker does not answer"
        return found
    finally:
        consumer.close()


def _consumer(settings: Settings) -> dict[str, Any]:
    """Options of a client with the right to read everything."""
    return {**kafka_access(settings, Principal.ADMIN).librdkafka(), "group.id": "oracle"}


def _partitions(consumer: Consumer, topic: str) -> list[TopicPartition]:
    """The partitions of a topic, each with its first offset."""
    found = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    return [TopicPartition(topic, one, 0) for one in found]


def _sinks(settings: Settings) -> list[SinkEntry]:
    return list(Manifest.read(settings.manifest_file).sinks.values())


def _key(row: Row, sink: SinkEntry) -> Key:
    return tuple(row[name] for name in sink.keys)


def wait_until(holds: Callable[[], bool], *, seconds: float, what: str) -> None:
    """Poll until a condition is true; the polls take at most a quarter of the time of one core."""
    began = time.monotonic()
    deadline = began + seconds
    while not holds():
        now = time.monotonic()
        assert now < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(max(POLL_SECONDS, 3 * (now - began)))
        began = time.monotonic()


def _count(location: str) -> int:
    return DeltaTable(location).to_pyarrow_dataset().count_rows()

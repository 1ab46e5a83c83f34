"""The configuration of the Debezium connector that captures the shop's database."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from spark_jobs.access.secrets import secret_path
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Manifest, SourceEntry
from spark_jobs.settings import Settings
from spark_jobs.stack.kafka import DEFAULT_PARTITIONS, kafka_directory
from spark_jobs.stack.placeholder import placeholder_config
from spark_jobs.stack.ports import LOOPBACK
from spark_jobs.stack.postgres import (
    DEBEZIUM,
    PUBLICATION,
    SHOP,
    VERIFIED,
    authority,
    secret_name,
)

CONNECTOR = "shop"
TOPIC_PREFIX = "shop"
SLOT = "tidemark"
HEARTBEAT_MILLISECONDS = 5000
SIGNAL_MILLISECONDS = 1000
# One file of PostgreSQL's log, which removes whole files.
KEPT_BYTES = 16 * 1024 * 1024
# Prefix of this project's logical messages in the database log, which only advance positions.
MESSAGE_PREFIX = "tidemark"
POSTGRES_PORT = 5432


def debezium_secrets(settings: Settings) -> str:
    """The one directory that connectors may read secrets from."""
    return str(secret_path(settings, secret_name(DEBEZIUM)).parent)


def connector_config(settings: Settings, tables: Iterable[str]) -> dict[str, str]:
    """The Debezium connector's configuration for tables given as ``schema.table``."""
    # The URL's user and password belong to the role that reconciles, so they are ignored.
    source = conninfo_to_dict(settings.source_database)
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "topic.prefix": TOPIC_PREFIX,
        "database.hostname": str(source.get("host", LOOPBACK)),
        "database.port": str(
            source.get("port", POSTGRES_PORT if source else settings.ports.postgres)
        ),
        "database.dbname": str(source.get("dbname", SHOP)),
        "database.user": DEBEZIUM,
        "database.password": f"${{directory:{debezium_secrets(settings)}:{DEBEZIUM}}}",
        **database_trust(settings),
        **placeholder_config(settings),
        **signal_config(settings),
        "plugin.name": "pgoutput",
        "slot.name": SLOT,
        "publication.name": PUBLICATION,
        "publication.autocreate.mode": "disabled",
        "table.include.list": ",".join(map(only, sorted(tables))),
        "snapshot.mode": "initial",
        # Exact decimals and readable times, whatever their precision.
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        # By default truncations are dropped silently.
        "skipped.operations": "none",
        "tombstones.on.delete": "true",
        # By default a value that cannot be converted becomes NULL.
        "event.converting.failure.handling.mode": "fail",
        # One change that cannot be read must not hold up all tables: it is left out and noted. The
        # log of a worker elsewhere cannot be read from here, so its connector stops.
        "event.processing.failure.handling.mode": "fail" if settings.kafka_connect.url else "warn",
        "provide.transaction.metadata": "true",
        # While the captured tables are quiet, PostgreSQL sends nothing of other tables' changes, so
        # the slot would keep their log. A message of our own lets it advance.
        "heartbeat.interval.ms": str(HEARTBEAT_MILLISECONDS),
        "heartbeat.action.query": advance(SLOT),
        "message.prefix.exclude.list": MESSAGE_PREFIX,
        # A slot that was recreated behind the stored offset means lost changes: fail.
        "offset.mismatch.strategy": "trust_offset",
        "topic.creation.default.replication.factor": str(settings.local.kafka_brokers),
        "topic.creation.default.partitions": str(DEFAULT_PARTITIONS),
    }


def only(table: str) -> str:
    r"""The regular expression by which Debezium finds this table, and no other.

    >>> only("public.order$items")
    'public\\.order\\$items'
    """
    return re.escape(table)


def advance(slot: str) -> str:
    """SQL that writes a message if a slot keeps log that its connector has not confirmed.

    The message is a transaction: the read-only incremental snapshot fails at one without. Each one
    is two records of the topic of transactions.
    """
    return (
        f"SELECT pg_logical_emit_message(true, '{MESSAGE_PREFIX}', '') FROM pg_replication_slots "
        f"WHERE slot_name = '{slot}' "
        f"AND pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) > {KEPT_BYTES}"
    )


def signal_config(settings: Settings) -> dict[str, str]:
    """The connector's options for the signal file, by which incremental snapshots are requested.

    It writes nothing to the database, which would otherwise need a table for watermarks. A worker
    elsewhere reads no file of this machine.
    """
    if settings.kafka_connect.url:
        return {}
    return {
        "read.only": "true",
        "signal.enabled.channels": "file",
        "signal.file": str(signal_file(settings)),
        "signal.poll.interval.ms": str(SIGNAL_MILLISECONDS),
    }


def signal_file(settings: Settings) -> Path:
    """Where signals to the connector are written; it empties the file."""
    return kafka_directory(settings) / "signals.jsonl"


def database_trust(settings: Settings) -> dict[str, str]:
    """The connector's options to verify the database's certificate."""
    if not settings.security.enabled:
        return {}
    return {"database.sslmode": VERIFIED, "database.sslrootcert": authority(settings)}


def captured_tables(manifest: Manifest) -> list[str]:
    """The source tables of the manifest's Debezium sources."""
    return [
        captured_table(source)
        for source in manifest.sources.values()
        if source.format is SourceFormat.DEBEZIUM
    ]


def captured_table(source: SourceEntry) -> str:
    """The table of a Debezium source; if none is declared, the one its topic is named after."""
    return source.table or (source.topic or "").removeprefix(f"{TOPIC_PREFIX}.")

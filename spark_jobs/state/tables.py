"""The control database's tables; nothing here touches a database."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from spark_jobs.state.types import UtcDateTime, json_column_type

# Raised by one with each change of the tables below; see migrate.py.
SCHEMA_VERSION: Final = 13

METADATA: Final = MetaData()

SCHEMA = Table(
    "tidemark_schema",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("migrated_at", UtcDateTime, nullable=False),
)

# The ledger: one row per attempt to refresh a gold view.
ATTEMPTS = Table(
    "attempts",
    METADATA,
    Column("attempt_id", String(250), primary_key=True),
    Column("view", String(80), nullable=False),
    Column("tick", String(250), nullable=False),
    Column("status", String(20), nullable=False),
    Column("decision", String(20)),
    Column("rule", String(40)),
    Column("reason_code", String(80)),
    Column("reason", Text),
    Column("sequence", BigInteger),
    Column("epoch", BigInteger, nullable=False),
    Column("fingerprint", String(128)),
    Column("vector", json_column_type()),
    Column("scope", json_column_type()),
    Column("estimate", json_column_type()),
    Column("actual", json_column_type()),
    Column("verdict", json_column_type()),
    Column("published_version", BigInteger),
    Column("started_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("error", Text),
    # A person; NULL: a schedule or a stream.
    Column("asked_by", String(250)),
    # The sequence is the Delta transaction's version: of two attempts with the same one, Delta
    # would silently skip the second.
    UniqueConstraint("view", "epoch", "sequence", name="attempts_sequence"),
    Index("attempts_by_view", "view", "started_at"),
    Index("attempts_by_tick", "tick"),
)

# Results of comparing published tables with their SQL.
VERIFICATIONS = Table(
    "verifications",
    METADATA,
    Column("verification_id", String(40), primary_key=True),
    Column("view", String(80), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("finding", String(40), nullable=False),
    Column("detail", Text, nullable=False),
    Column("vector", json_column_type(), nullable=False),
    Column("rows", BigInteger),
    Column("missing", BigInteger, nullable=False),
    Column("unexpected", BigInteger, nullable=False),
    Column("largest_difference", Double),
    Column("sample", json_column_type()),
    Column("seconds", Double, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Index("verifications_by_view", "view", "at"),
)

# Input versions that all views of a tick read.
TICKS = Table(
    "ticks",
    METADATA,
    Column("tick", String(250), primary_key=True),
    Column("table_name", String(80), primary_key=True),
    Column("table_id", String(80), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("pinned_at", UtcDateTime, nullable=False),
)

# Versions at which tables show the same transactions of their source database.
FRONTIERS = Table(
    "frontiers",
    METADATA,
    Column("database", String(250), primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("table_name", String(80), primary_key=True),
    Column("table_id", String(80), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("at", UtcDateTime, nullable=False),
)

LEASES = Table(
    "leases",
    METADATA,
    Column("resource", String(250), primary_key=True),
    # NULL once released: the row stays, because the fencing number must only grow.
    Column("owner", String(250)),
    Column("fencing", BigInteger, nullable=False),
    Column("acquired_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)

EPOCHS = Table(
    "epochs",
    METADATA,
    Column("table_name", String(80), primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("bumped_at", UtcDateTime, nullable=False),
)

# Views that a rollback pins to an earlier version.
PINNED_VIEWS = Table(
    "pinned_views",
    METADATA,
    Column("view", String(80), primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("who", String(250), nullable=False),
    Column("reason", Text, nullable=False),
    Column("replay_id", String(250), nullable=False),
    Column("since", UtcDateTime, nullable=False),
)

# Replays and rollbacks: who asked for what, and why.
REPLAYS = Table(
    "replays",
    METADATA,
    Column("replay_id", String(250), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("status", String(20), nullable=False),
    Column("who", String(250), nullable=False),
    Column("reason", Text, nullable=False),
    Column("ticket", String(80)),
    Column("request", json_column_type(), nullable=False),
    Column("plan", json_column_type(), nullable=False),
    Column("error", Text),
    Column("started_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("decisions", json_column_type()),
    Index("replays_by_start", "started_at"),
)

REPLAY_VIEWS = Table(
    "replay_views",
    METADATA,
    Column("replay_id", String(250), primary_key=True),
    Column("view", String(80), primary_key=True),
    Column("position", Integer, nullable=False),
    Column("status", String(20), nullable=False),
    Column("attempt_id", String(250)),
    # The published table's version before and after.
    Column("before_version", BigInteger),
    Column("published_version", BigInteger),
    Column("difference", json_column_type()),
    Column("error", Text),
    Column("updated_at", UtcDateTime, nullable=False),
)

# Deployments: manifest, plan and progress.
DEPLOYMENTS = Table(
    "deployments",
    METADATA,
    Column("deployment_id", String(80), primary_key=True),
    # Unique: of two machines that apply to the same base, one fails.
    Column("number", BigInteger, nullable=False),
    Column("status", String(20), nullable=False),
    Column("in_force", Integer, nullable=False),
    Column("who", String(250), nullable=False),
    Column("manifest", Text, nullable=False),
    Column("settings", json_column_type(), nullable=False),
    Column("plan", json_column_type(), nullable=False),
    Column("steps", json_column_type(), nullable=False),
    # Tables that are no longer declared but still exist, by name.
    Column("kept", json_column_type(), nullable=False),
    Column("error", Text),
    Column("started_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    UniqueConstraint("number", name="deployments_number"),
)

SILVER_BATCHES = Table(
    "silver_batches",
    METADATA,
    Column("silver", String(80), primary_key=True),
    Column("epoch", BigInteger, primary_key=True, autoincrement=False),
    Column("batch_id", BigInteger, primary_key=True, autoincrement=False),
    Column("records", BigInteger, nullable=False),
    Column("applied", BigInteger, nullable=False),
    Column("superseded", BigInteger, nullable=False),
    Column("quarantined", BigInteger, nullable=False),
    Column("duplicate", BigInteger, nullable=False),
    Column("ignored", BigInteger, nullable=False),
    Column("first_bronze_version", BigInteger),
    Column("last_bronze_version", BigInteger),
    Column("at", UtcDateTime, nullable=False),
    # The suite's verdict; NULL without a suite.
    Column("outcome", String(20)),
    Column("verdict", json_column_type()),
)

STREAM_PROGRESS = Table(
    "stream_progress",
    METADATA,
    Column("query", String(120), primary_key=True),
    Column("batch_id", BigInteger, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("end_offsets", json_column_type()),
    Column("at", UtcDateTime, nullable=False),
    Column("heartbeat_at", UtcDateTime, nullable=False),
    Column("state", String(20), nullable=False),
    Column("lag_records", BigInteger),
    Column("error", Text),
    Column("deployment", BigInteger),
)

# First arrival of each declared column, in the order of commits.
SOURCE_COLUMNS = Table(
    "source_columns",
    METADATA,
    Column("source", String(80), primary_key=True),
    Column("column", String(250), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("sequence", String(120), nullable=False),
)

# Differences between declarations and records; ``told`` is part of their key.
SCHEMA_DRIFT = Table(
    "schema_drift",
    METADATA,
    Column("source", String(80), primary_key=True),
    Column("kind", String(20), primary_key=True),
    Column("column", String(250), primary_key=True),
    Column("told", String(80), primary_key=True),
    Column("detail", Text, nullable=False),
    Column("declared", Text, nullable=False),
    Column("topic", String(250), nullable=False),
    Column("partition", Integer, nullable=False),
    Column("offset", BigInteger, nullable=False),
    Column("sequence", String(120), nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("accepted_by", String(250)),
    Column("accepted_at", UtcDateTime),
    Column("reason", Text),
)

# Faults of Airflow tasks, from the first failure until a run succeeds.
INCIDENTS = Table(
    "incidents",
    METADATA,
    Column("incident_id", String(32), primary_key=True),
    Column("dag_id", String(250), nullable=False),
    Column("task_id", String(250), nullable=False),
    Column("fault", String(32), nullable=False),
    Column("table", String(120)),
    Column("condition", String(120), nullable=False),
    Column("message", Text, nullable=False),
    Column("runbook", Text, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("last_at", UtcDateTime, nullable=False),
    Column("times", Integer, nullable=False),
    Column("told_at", UtcDateTime, nullable=False),
    Column("resolved_at", UtcDateTime),
)

# Cursors of asset events, by gold view.
ASSET_CURSORS = Table(
    "asset_cursors",
    METADATA,
    Column("view", String(80), primary_key=True),
    Column("table_id", String(80), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("error", Text),
    Column("waits_since", UtcDateTime),
)

# Virtual environments: changed views that are built beside production.
ENVIRONMENTS = Table(
    "environments",
    METADATA,
    Column("name", String(40), primary_key=True),
    Column("status", String(20), nullable=False),
    Column("base", String(80), nullable=False),
    Column("who", String(250), nullable=False),
    Column("manifest", Text, nullable=False),
    Column("views", json_column_type(), nullable=False),
    Column("pins", json_column_type(), nullable=False),
    Column("marked", json_column_type(), nullable=False),
    Column("deployment", String(80)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

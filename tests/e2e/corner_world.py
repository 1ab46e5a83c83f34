"""Tables in Postgres, their connector and the streams into a lake of their own.

The services are those of a stack.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from deltalake import DeltaTable
from psycopg import sql
from pyspark.sql import SparkSession

from spark_jobs.access.kafka import Principal, kafka_access
from spark_jobs.bronze.flow import BronzeFlow
from spark_jobs.bronze.topics import Topics
from spark_jobs.bronze.transactions import read_transactions
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import Manifest
from spark_jobs.settings import Settings, load_settings
from spark_jobs.silver.check.reconcile import reconcile_silver
from spark_jobs.silver.check.transactions import incomplete_transactions
from spark_jobs.silver.flow import SilverFlow
from spark_jobs.stack.connect import client, states
from spark_jobs.stack.connector import advance, connector_config
from spark_jobs.stack.kafka import admin
from spark_jobs.stack.postgres import DEBEZIUM, SHOP, dsn
from spark_jobs.stack.resnapshot import drop_slot
from spark_jobs.state.store import ControlStore
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.tables import read
from tests.e2e import oracle
from tests.e2e.running import QUICK, RunningStack, write_files

_NUMBERS = count(1)
COLUMNS = {
    "id": ("BIGINT", "BIGINT"),
    "body": ("TEXT", "STRING"),
    "mood": ("corner_mood", "STRING"),
    "price": ("NUMERIC(12, 3)", "DECIMAL(12,3)"),
    "amount": ("NUMERIC", "STRING"),
    "ratio": ("DOUBLE PRECISION", "DOUBLE"),
    "small": ("REAL", "FLOAT"),
    "at": ("TIMESTAMPTZ", "TIMESTAMP"),
    "local": ("TIMESTAMP", "TIMESTAMP_NTZ"),
    "day": ("DATE", "DATE"),
    "tags": ("TEXT[]", "ARRAY<STRING>"),
    "numbers": ("INT[]", "ARRAY<INT>"),
    "doc": ("JSONB", "STRING"),
    "raw": ("BYTEA", "BINARY"),
}
# One for each replica identity.
TABLES = {"corner_default": "DEFAULT", "corner_full": "FULL"}
# Time limit for the streams and the connector on a slow machine.
SECONDS = 180


class Corner:
    """The tables in Postgres, their connector, and the streams into a lake of their own."""

    def __init__(self, stack: RunningStack, spark: SparkSession, root: Path) -> None:
        # Name of the connector, its slot and its topics: Connect keeps offsets by name.
        self.name = f"corner{next(_NUMBERS)}"
        self.stack, self.spark = stack, spark
        self.shop = dsn(stack.settings, database=SHOP, role=SHOP)
        self.settings = own_project(root, stack.settings, prefix=self.name)
        self.manifest: Manifest = compile_project(root)
        self.lake = Lake(self.settings.lake)
        self.topics = Topics(kafka_access(self.settings, Principal.STREAMS))

    def create(self) -> None:
        allow(admin(self.stack.settings), self.name)
        self.execute("DROP TYPE IF EXISTS corner_mood CASCADE")
        self.execute("CREATE TYPE corner_mood AS ENUM ('calm', 'cross')")
        self.execute("CREATE TABLE corner_signals (id TEXT PRIMARY KEY, type TEXT, data TEXT)")
        self.execute(f"GRANT INSERT, DELETE ON corner_signals TO {DEBEZIUM}")
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
        for table, identity in TABLES.items():
            self.execute(f"CREATE TABLE {table} ({columns}, PRIMARY KEY (id))")
            self.execute(f"ALTER TABLE {table} REPLICA IDENTITY {identity}")
            self.execute(f"ALTER TABLE {table} ALTER COLUMN body SET STORAGE EXTERNAL")

    def drop(self) -> None:
        with client(self.stack.settings) as api:
            api.delete(f"/connectors/{self.name}")
        oracle.wait_until(self.slot_dropped, seconds=SECONDS, what="the slot is free")
        for table in (*TABLES, "corner_signals"):
            self.execute(f"DROP TABLE IF EXISTS {table}")
        self.execute("DROP TYPE IF EXISTS corner_mood")

    def slot_dropped(self) -> bool:
        """Drop the slot once its connector no longer uses it; it would retain the log forever."""
        role = dsn(self.stack.settings, database=SHOP, role=DEBEZIUM)
        return drop_slot(role, self.name)

    def capture(self) -> None:
        """Register the connector of these tables and wait until it runs."""
        tables = [f"public.{table}" for table in (*TABLES, "corner_signals")]
        config = connector_config(self.stack.settings, tables) | {
            "topic.prefix": self.name,
            "slot.name": self.name,
            "heartbeat.action.query": advance(self.name),
            # Signals by a table of the database, as for connectors that run elsewhere.
            "read.only": "false",
            "signal.enabled.channels": "source",
            "signal.data.collection": "public.corner_signals",
        }
        with client(self.stack.settings) as api:
            api.put(f"/connectors/{self.name}/config", json=config).raise_for_status()

            def runs() -> bool:
                status = api.get(f"/connectors/{self.name}/status")
                return status.is_success and states(status.json()) == ["RUNNING"] * 2

            oracle.wait_until(runs, seconds=SECONDS, what="the connector runs")
        wanted = {source.topic for source in self.manifest.sources.values() if source.topic}
        oracle.wait_until(
            lambda: self.topics.ids(wanted).keys() == wanted, seconds=SECONDS, what="the snapshot"
        )

    @contextmanager
    def lagging(self) -> Iterator[None]:
        """Pause the connector during the block; it processes the changes afterwards."""
        with client(self.stack.settings) as api:
            path = f"/connectors/{self.name}"
            api.put(f"{path}/stop").raise_for_status()

            def stopped() -> bool:
                status = api.get(f"{path}/status")
                return status.is_success and states(status.json()) == ["STOPPED"]

            oracle.wait_until(stopped, seconds=SECONDS, what="the connector stands still")
            yield
            api.put(f"{path}/resume").raise_for_status()

    def execute(self, *statements: str, values: Sequence[Any] = ()) -> None:
        """Execute statements in one transaction."""
        with psycopg.connect(self.shop) as connection:
            for statement in statements:
                connection.execute(statement.encode(), values or None)

    def everywhere(self, *statements: str) -> None:
        """Execute a transaction on all tables; statements contain the placeholder THE_TABLE."""
        self.execute(*(one.replace("THE_TABLE", table) for table in TABLES for one in statements))

    def insert(self, **values: Any) -> None:
        names = sql.SQL(", ").join(map(sql.Identifier, values))
        marks = sql.SQL(", ").join([sql.Placeholder()] * len(values))
        with psycopg.connect(self.shop) as connection:
            for table in TABLES:
                query = sql.SQL("INSERT INTO {} ({}) VALUES ({})")
                connection.execute(
                    query.format(sql.Identifier(table), names, marks), list(values.values())
                )

    def flows(self, store: ControlStore) -> list[BronzeFlow | SilverFlow]:
        sources = self.manifest.sources
        return [
            *(BronzeFlow(source, self.settings, self.topics) for source in sources.values()),
            *(
                SilverFlow(sources[entry.source], entry, self.settings, store)
                for entry in self.manifest.silver.values()
            ),
        ]

    def postgres(self, table: str) -> list[tuple[Any, ...]]:
        # The connector's text for NaN.
        amount = "replace(amount::text, 'NaN', 'NAN')"
        texts = {"doc": "doc::text", "amount": amount, "mood": "mood::text"}
        names = ", ".join(texts.get(name, name) for name in COLUMNS)
        with psycopg.connect(self.shop, options="-c timezone=UTC") as connection:
            rows = connection.execute(f"SELECT {names} FROM {table}".encode()).fetchall()
        return normal(rows)

    def silver(self, table: str) -> list[tuple[Any, ...]]:
        place = self.lake.location(self.manifest.silver[table].table_name)
        rows = DeltaTable(place).to_pyarrow_table(columns=list(COLUMNS)).to_pylist()
        return normal([tuple(row[name] for name in COLUMNS) for row in rows])

    def wait_equal(self) -> None:
        """Wait until silver equals Postgres, and show the difference otherwise."""
        for table in TABLES:
            with suppress(AssertionError):
                oracle.wait_until(
                    lambda table=table: self.silver(table) == self.postgres(table),
                    seconds=SECONDS,
                    what=f"{table} equals its table in Postgres",
                )
            assert self.silver(table) == self.postgres(table)


def own_project(root: Path, shared: Settings, *, prefix: str) -> Settings:
    """Declarations of the tables, with the services of another project."""
    declared = {name: repr(kind) for name, (_, kind) in COLUMNS.items()}
    declared["mood"] = "{type: STRING, values: [calm, cross]}"
    columns = "".join(f"  {name}: {said}\n" for name, said in declared.items())
    names = ", ".join(f"s.`{name}`" for name in COLUMNS)
    files = {}
    for table in TABLES:
        select = f"SELECT {names} FROM bronze.{table} AS s\n"
        head = "description: Corner cases.\n"
        files |= {
            f"sources/{table}.yml": f"{head}format: debezium\ntopic: {prefix}.public.{table}\n"
            f"table: public.{table}\nkeys: [id]\ncolumns:\n{columns}",
            f"sql/silver/{table}.sql": f"/* silver\n{head}*/\n{select}",
            f"sql/silver/{table}_past.sql": f"/* silver\n{head}stored_as_scd_type: 2\n*/\n{select}",
        }
    write_files(root, files)
    (root / "state").mkdir()
    (root / "state/secrets").symlink_to(shared.secrets_dir)
    security = {"enabled": shared.security.enabled}
    ports = shared.ports.model_dump()
    return load_settings(
        root, state_dir=root / "state", ports=ports, security=security, streams=QUICK
    )


def allow(client: AdminClient, prefix: str) -> None:
    """Grant the worker the right to write the connector's topics, and the streams to read them."""
    write = (AclOperation.CREATE, AclOperation.WRITE, AclOperation.DESCRIBE)
    rights = {
        Principal.CONNECT: (write, (f"{prefix}.", f"__debezium-heartbeat.{prefix}")),
        Principal.STREAMS: ((AclOperation.READ, AclOperation.DESCRIBE), (f"{prefix}.",)),
    }
    bindings = [
        AclBinding(
            ResourceType.TOPIC,
            name,
            ResourcePatternType.PREFIXED,
            f"User:{who}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for who, (operations, names) in rights.items()
        for name in names
        for operation in operations
    ]
    for answer in client.create_acls(bindings).values():
        answer.result(30)


def normal(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Comparable rows: NaN equals NaN, and times are in UTC."""

    def one(value: Any) -> Any:
        if isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC)
        return str(value) if isinstance(value, float) else value

    return sorted((tuple(map(one, row)) for row in rows), key=lambda row: row[0])


def large(seed: int) -> str:
    """A text that PostgreSQL stores out of line (TOAST)."""
    return "".join(random.Random(seed).choices(string.ascii_letters, k=9000))


def values(places: Sequence[str]) -> list[bytes | None]:
    """The values of all bronze records."""
    return [
        value
        for place in places
        for value in DeltaTable(place).to_pyarrow_table(columns=["value"]).column(0).to_pylist()
    ]


def assert_sound(corner: Corner, store: ControlStore, *, transactions: int) -> None:
    """The balances agree, each transaction is complete, and a rebuild finds no difference."""
    ended = read_transactions(corner.topics, f"{corner.name}.transaction")
    for source in corner.manifest.sources.values():
        changes = ended.changes[source.table or ""]
        bronze = read(corner.spark, corner.lake.location(source.table_name))
        assert len(changes) >= transactions
        known = {"told_at": ended.told_at, "since": ended.since or 0}
        assert incomplete_transactions(bronze, changes, **known) == []
    for entry in corner.manifest.silver.values():
        flow = SilverFlow(corner.manifest.sources[entry.source], entry, corner.settings, store)
        bronze = corner.lake.location(flow.source.table_name)
        balance = reconcile_silver(corner.lake, flow.tables, store=store, source=bronze)
        assert balance.problems == ()
        assert flow.rebuilder(corner.spark).preview().right, entry.name

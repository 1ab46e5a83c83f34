"""Debezium's connector in a Java process of its own, without Kafka: what it would write there.

The connector, its settings and the JSON converter are those of the local stack.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from spark_jobs.settings import REPOSITORY, load_settings
from spark_jobs.stack.connector import connector_config
from spark_jobs.stack.java import java_program
from spark_jobs.stack.postgres import PUBLICATION
from tests.servers import LOOPBACK, Postgres
from tests.spark.silver.world import Record

SECONDS = 60
PREFIX = "shop"
_JSON = "org.apache.kafka.connect.json.JsonConverter"


@dataclass
class Connector:
    """A connector that runs.

    Attributes:
        task: the connector's.
        converters: of keys and of values.
        records: key and value of what it wrote so far, by topic.
    """

    task: Any
    converters: tuple[Any, Any]
    records: dict[str, list[Record]] = field(default_factory=dict)

    def wait(self, table: str, count: int) -> list[Record]:
        """The records of a table, once there are so many."""
        topic = f"{PREFIX}.{table}"
        deadline = time.monotonic() + SECONDS
        while len(self.records.get(topic, ())) < count:
            assert time.monotonic() < deadline, self.records.get(topic)
            for one in self.task.poll() or ():
                key, value = self.converters
                record = (
                    key.fromConnectData(one.topic(), one.keySchema(), one.key()),
                    value.fromConnectData(one.topic(), one.valueSchema(), one.value()),
                )
                self.records.setdefault(one.topic(), []).append(record)
        return self.records[topic]


@contextmanager
def running_connector(
    server: Postgres, tables: Sequence[str], *, slot: str, state: Path, **changed: str
) -> Iterator[Connector]:
    """Capture tables, given as ``schema.table``, from a snapshot on.

    Args:
        server: whose tables they are.
        tables: which.
        slot: the name of its replication slot.
        state: a directory for its settings and positions.
        changed: settings of the connector that differ from the stack's, with ``_`` for ``.``.
    """
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        made = connection.execute("SELECT FROM pg_publication WHERE pubname = %s", [PUBLICATION])
        if made.fetchone() is None:
            connection.execute(f"CREATE PUBLICATION {PUBLICATION} FOR ALL TABLES".encode())
    settings = load_settings(state, state_dir=state / "state")
    config = connector_config(settings, tables) | {
        "name": PREFIX,
        "task.id": "0",
        "slot.name": slot,
        "database.hostname": LOOPBACK,
        "database.port": str(server.port),
        "database.dbname": "postgres",
        "database.user": "tidemark",
        "database.password": "trusted",
        **{name.replace("_", "."): value for name, value in changed.items()},
    }
    jars = REPOSITORY / "jars" / "kafka" / "target" / "dependency"
    port = launch_gateway(
        classpath=f"{jars}/*",
        java_path=java_program(),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        connector = _started(gateway.jvm, config, state)
        try:
            yield connector
        finally:
            connector.task.stop()
    finally:
        gateway.shutdown()


def _started(jvm: Any, config: dict[str, str], state: Path) -> Connector:
    kafka = jvm.org.apache.kafka.connect
    keys, values = kafka.json.JsonConverter(), kafka.json.JsonConverter()
    keys.configure({"schemas.enable": "false"}, True)
    values.configure({"schemas.enable": "false"}, False)
    offsets = kafka.storage.FileOffsetBackingStore(keys)
    worker = {
        "bootstrap.servers": f"{LOOPBACK}:1",
        "key.converter": _JSON,
        "value.converter": _JSON,
        "offset.storage.file.filename": str(state / "offsets"),
    }
    offsets.configure(kafka.runtime.standalone.StandaloneConfig(worker))
    offsets.start()
    reader = kafka.storage.OffsetStorageReaderImpl(offsets, PREFIX, keys, values)
    task = jvm.io.debezium.connector.postgresql.PostgresConnectorTask()
    place = kafka.util.ConnectorTaskId(PREFIX, 0)
    task.initialize(kafka.runtime.WorkerSourceTaskContext(reader, place, None, None, None))
    task.start(config)
    return Connector(task, (keys, values))

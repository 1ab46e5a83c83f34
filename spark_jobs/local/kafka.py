"""The Kafka broker: one node that is broker and controller at once, on loopback."""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import KafkaError, NewTopic

from spark_jobs.local.errors import PartFailedError
from spark_jobs.local.java import LOG4J_PROPERTIES, small_java_command, write_properties
from spark_jobs.local.parts import Part
from spark_jobs.local.ports import LOOPBACK, listening
from spark_jobs.settings import Settings

HEAP = "512m"
LOG4J_FILE = "log4j2.properties"
# Where a record is a change of state, losing its order is losing data: one partition keeps it.
DEFAULT_PARTITIONS = 1


def kafka_part(settings: Settings) -> Part:
    """The broker as a part of the stack."""
    directory = kafka_directory(settings)
    return Part(
        name="kafka",
        command=kafka_command(settings, "kafka.Kafka", str(directory / "server.properties")),
        ports={
            "ports.kafka": settings.ports.kafka,
            "ports.kafka_controller": settings.ports.kafka_controller,
        },
        prepare=partial(prepare_broker, settings),
        probe=partial(probe_broker, settings),
        stop_seconds=30,
    )


def kafka_directory(settings: Settings) -> Path:
    """The files of the broker and of the Connect worker."""
    return settings.state / "kafka"


def kafka_command(settings: Settings, main: str, *arguments: str) -> tuple[str, ...]:
    """A command line for a class of the Kafka classpath."""
    return small_java_command(
        main,
        *arguments,
        classpath=settings.kafka_jars,
        log4j=kafka_directory(settings) / LOG4J_FILE,
        heap=HEAP,
    )


def server_properties(settings: Settings) -> dict[str, object]:
    """The broker's configuration."""
    ports = settings.ports
    return {
        "node.id": 1,
        "process.roles": "broker,controller",
        "controller.quorum.voters": f"1@{LOOPBACK}:{ports.kafka_controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{ports.kafka},"
        f"CONTROLLER://{LOOPBACK}:{ports.kafka_controller}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{ports.kafka}",
        "log.dirs": kafka_directory(settings) / "data",
        "auto.create.topics.enable": "false",
        "num.partitions": DEFAULT_PARTITIONS,
        "default.replication.factor": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    }


def prepare_broker(settings: Settings) -> None:
    """Write the configuration, and format the storage once."""
    directory = kafka_directory(settings)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / LOG4J_FILE).write_text(LOG4J_PROPERTIES)
    properties = directory / "server.properties"
    write_properties(properties, server_properties(settings))
    if (directory / "data" / "meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    answer = subprocess.run(
        kafka_command(
            settings,
            "kafka.tools.StorageTool",
            *("format", "--cluster-id", cluster, "--config", str(properties)),
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise PartFailedError(
            "kafka", "could not format its storage", log=None, tail=answer.stderr[-2000:]
        )


def probe_broker(settings: Settings) -> str | None:
    """What the broker still lacks: it serves once it answers with its metadata."""
    if not listening(settings.ports.kafka):
        return "does not listen yet"
    try:
        brokers = admin(settings).list_topics(timeout=3).brokers
    except KafkaException as error:
        return str(error.args[0].str())
    return None if brokers else "has no broker yet"


def admin(settings: Settings) -> AdminClient:
    """A client for topics."""
    return AdminClient({"bootstrap.servers": settings.kafka, "log_level": 0})


def ensure_topics(
    settings: Settings, names: Iterable[str], *, partitions: int = DEFAULT_PARTITIONS
) -> None:
    """Make the topics that do not exist yet; an existing topic is left as it is.

    Raises:
        PartFailedError: the broker refuses a topic.
    """
    client = admin(settings)
    existing = client.list_topics(timeout=10).topics
    missing = [
        NewTopic(name, num_partitions=partitions, replication_factor=1)
        for name in names
        if name not in existing
    ]
    if not missing:
        return
    for name, outcome in client.create_topics(missing, operation_timeout=10).items():
        try:
            outcome.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                problem = f"refuses topic {name!r}: {error.args[0].str()}"
                raise PartFailedError("kafka", problem, log=None) from error

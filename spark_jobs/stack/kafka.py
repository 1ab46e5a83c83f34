"""Kafka on loopback: one node or several, each broker and controller at once."""

from __future__ import annotations

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from threading import Lock

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    OffsetSpec,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import KafkaError, NewTopic

from spark_jobs.access.kafka import MECHANISM, Principal, jaas, kafka_access, password_name
from spark_jobs.access.secrets import AUTHORITY, read_secret, secret_path
from spark_jobs.settings import Settings
from spark_jobs.stack.certificates import KAFKA, certificate_name, ensure_certificate
from spark_jobs.stack.errors import KafkaUsersMissingError, PartFailedError
from spark_jobs.stack.java import LOG4J_PROPERTIES, small_java_command, write_properties
from spark_jobs.stack.parts import Part, nothing, numbered
from spark_jobs.stack.ports import LOOPBACK, listening
from spark_jobs.stack.secrets import ensure_secret, write_secret

HEAP = "512m"
LOG4J_FILE = "log4j2.properties"
# Changes of a table need their order, which only one partition keeps.
DEFAULT_PARTITIONS = 1
# Prefix of Kafka Connect's internal topics.
INTERNAL_TOPICS = "_connect_"
SUPER = (Principal.BROKER, Principal.ADMIN)
# Hash iterations of the passwords with which the storage is formatted.
ITERATIONS = 4096
_SECRETS = Lock()


def kafka_parts(settings: Settings) -> list[Part]:
    """The brokers as parts of the stack."""
    return [broker(settings, number) for number in nodes(settings)]


def broker(settings: Settings, number: int) -> Part:
    """One broker."""
    return Part(
        name=numbered("kafka", number),
        command=kafka_command(settings, "kafka.Kafka", str(properties_file(settings, number))),
        ports=dict(settings.ports.of(kind, number) for kind in ("kafka", "kafka_controller")),
        prepare=partial(prepare_broker, settings, number),
        probe=partial(probe_broker, settings, number),
        finish=partial(ensure_users, settings) if settings.security.enabled else nothing,
        stop_seconds=30,
    )


def broker_names(settings: Settings) -> tuple[str, ...]:
    """The parts that must be ready before topics are created."""
    return tuple(numbered("kafka", number) for number in nodes(settings))


def kafka_directory(settings: Settings) -> Path:
    """The files of the brokers and of the Connect workers."""
    return settings.state / "kafka"


def properties_file(settings: Settings, number: int) -> Path:
    """A broker's configuration."""
    return kafka_directory(settings) / f"{numbered('server', number)}.properties"


def data_directory(settings: Settings, number: int) -> Path:
    """A broker's log segments."""
    return kafka_directory(settings) / numbered("data", number)


def kafka_command(
    settings: Settings, main: str, *arguments: str, log4j: str = LOG4J_FILE
) -> tuple[str, ...]:
    """A command line for a class of the Kafka classpath."""
    return small_java_command(
        main,
        *arguments,
        classpath=settings.kafka_jars,
        log4j=kafka_directory(settings) / log4j,
        heap=HEAP,
    )


def server_properties(settings: Settings, number: int) -> dict[str, object]:
    """A broker's configuration, by Kafka's names."""
    ports = settings.ports
    listener = "SASL_SSL" if settings.security.enabled else "PLAINTEXT"
    brokers = settings.local.kafka_brokers
    _, client_port = ports.of("kafka", number)
    _, controller_port = ports.of("kafka_controller", number)
    voters = [f"{one}@{LOOPBACK}:{ports.of('kafka_controller', one)[1]}" for one in nodes(settings)]
    # If one broker is lost, another one has every acknowledged record.
    in_sync = max(1, brokers - 1)
    return {
        "node.id": number,
        "process.roles": "broker,controller",
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listener}://{LOOPBACK}:{client_port},"
        f"CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"{listener}://{LOOPBACK}:{client_port}",
        "log.dirs": data_directory(settings, number),
        "auto.create.topics.enable": "false",
        "num.partitions": DEFAULT_PARTITIONS,
        "default.replication.factor": brokers,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": brokers,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": brokers,
        "transaction.state.log.min.isr": in_sync,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": brokers,
        "share.coordinator.state.topic.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
        **(security_properties(settings) if settings.security.enabled else {}),
    }


def security_properties(settings: Settings) -> dict[str, object]:
    """A broker's options for security, by Kafka's names.

    Clients have passwords, the controller has certificates, and no access is without a grant.

    Raises:
        SecretMissingError: the passwords do not exist yet.
    """
    return {
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": jaas(
            Principal.BROKER, read_secret(settings, password_name(Principal.BROKER))
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": secret_path(settings, certificate_name(KAFKA)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": secret_path(settings, AUTHORITY),
        # A controller stores the users' passwords in its own log, so it cannot authenticate the
        # broker by one; the broker has a certificate instead.
        "listener.name.controller.ssl.client.auth": "required",
        "listener.name.controller.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": ";".join(f"User:{one}" for one in SUPER),
    }


def nodes(settings: Settings) -> range:
    """The numbers of the brokers."""
    return range(1, settings.local.kafka_brokers + 1)


def prepare_broker(settings: Settings, number: int) -> None:
    """Write the configuration, and format the storage once.

    Raises:
        KafkaUsersMissingError: the storage was formatted without users, or their passwords are
            gone.
        PartFailedError: Kafka's tool fails.
    """
    directory = kafka_directory(settings)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / LOG4J_FILE).write_text(LOG4J_PROPERTIES)
    properties = properties_file(settings, number)
    data = data_directory(settings, number)
    formatted = (data / "meta.properties").exists()
    # The brokers are prepared at the same time, and must know the same passwords.
    with _SECRETS:
        if settings.security.enabled:
            ensure_certificate(settings, KAFKA)
            if formatted and not users_known(settings):
                raise KafkaUsersMissingError(data)
        if not formatted:
            for principal in Principal:
                ensure_secret(settings, password_name(principal))
    write_properties(properties, server_properties(settings, number))
    if not formatted:
        format_storage(settings, number)


def users_known(settings: Settings) -> bool:
    """Whether the storage was formatted with users; their passwords are generated for it."""
    return secret_path(settings, password_name(Principal.BROKER)).exists()


def format_storage(settings: Settings, number: int) -> None:
    """Format the storage with all users, so that security can also be switched on later.

    Raises:
        PartFailedError: Kafka's tool fails.
    """
    # The same for all brokers of the cluster.
    name = uuid.uuid5(uuid.NAMESPACE_URL, kafka_directory(settings).as_uri())
    cluster = urlsafe_b64encode(name.bytes).decode().rstrip("=").replace("-", "A")
    users = [
        f"{MECHANISM}=[name={one},password={read_secret(settings, password_name(one))}]"
        for one in Principal
    ]
    # Command lines are visible to every user.
    lines = [line for user in users for line in ("--add-scram", user)]
    arguments = write_secret(
        settings, f"kafka/{numbered('format', number)}.arguments", "\n".join(lines)
    )
    try:
        answer = subprocess.run(
            kafka_command(
                settings,
                "kafka.tools.StorageTool",
                *("format", "--cluster-id", cluster),
                *("--config", str(properties_file(settings, number))),
                f"@{arguments}",
            ),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        arguments.unlink()
    if answer.returncode != 0:
        raise PartFailedError(
            numbered("kafka", number),
            "could not format its storage",
            log=None,
            tail=answer.stderr[-2000:],
        )


def probe_broker(settings: Settings, number: int) -> str | None:
    """Why a broker is not ready; None once the cluster's metadata lists it."""
    _, port = settings.ports.of("kafka", number)
    if not listening(port):
        return "does not listen yet"
    try:
        access = kafka_access(settings, Principal.ADMIN).librdkafka()
        client = AdminClient({**access, "bootstrap.servers": f"{LOOPBACK}:{port}"})
        known = client.list_topics(timeout=3).brokers
    except KafkaException as error:
        return str(error.args[0].str())
    return None if number in known else "is not in the cluster yet"


def admin(settings: Settings) -> AdminClient:
    """A client of the super user, for topics, users and access rights."""
    return AdminClient(kafka_access(settings, Principal.ADMIN).librdkafka())


def ensure_users(settings: Settings) -> None:
    """Set every client's password at the broker; a deleted secret is recreated.

    Super users keep their passwords from the formatting, which are needed to change others.

    Raises:
        PartFailedError: the broker refuses a password.
    """
    passwords = {
        one: ensure_secret(settings, password_name(one)) for one in Principal if one not in SUPER
    }
    changes = [
        UserScramCredentialUpsertion(
            one.value, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS), text.encode()
        )
        for one, text in passwords.items()
    ]
    # Keep a reference: the futures complete only as long as the client exists.
    client = admin(settings)
    try:
        for answer in client.alter_user_scram_credentials(changes).values():
            answer.result()
    except KafkaException as error:
        problem = f"refuses a password: {error.args[0].str()}"
        raise PartFailedError("kafka", problem, log=None) from error


def ensure_topics(
    settings: Settings, names: Iterable[str], *, partitions: int = DEFAULT_PARTITIONS
) -> None:
    """Create the topics that do not exist yet; existing topics stay unchanged.

    Raises:
        PartFailedError: the broker refuses a topic.
    """
    client = admin(settings)
    existing = client.list_topics(timeout=10).topics
    missing = [
        # -1: the brokers' default.
        NewTopic(name, num_partitions=partitions, replication_factor=-1)
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


def records_in(settings: Settings, topic: str) -> int:
    """Number of records ever written to a topic: the sum of its partitions' end offsets.

    Raises:
        KafkaException: no broker answers, or there is no such topic.
    """
    client = admin(settings)
    partitions = client.list_topics(topic, timeout=10).topics[topic].partitions
    asked = {TopicPartition(topic, one): OffsetSpec.latest() for one in partitions}
    return sum(one.result().offset for one in client.list_offsets(asked).values())

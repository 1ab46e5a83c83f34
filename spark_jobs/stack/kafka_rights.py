"""The rights of each principal at the broker: what its part needs, and nothing else.

The super user grants them, and revokes those that the declarations no longer require.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from spark_jobs.access.kafka import Principal
from spark_jobs.bronze.transactions import transaction_topic
from spark_jobs.definitions.vocabulary import SinkSystem, SourceFormat
from spark_jobs.graph.manifest import Manifest, SourceEntry
from spark_jobs.settings import Settings
from spark_jobs.sinks.kafka import CLIENT_PREFIX, MARKS
from spark_jobs.stack.connect import GROUP
from spark_jobs.stack.connector import TOPIC_PREFIX
from spark_jobs.stack.errors import PartFailedError
from spark_jobs.stack.kafka import INTERNAL_TOPICS, admin

ANSWER_SECONDS = 10.0
# Spark generates the group ids of its source.
SPARK_GROUPS = "spark-kafka-source"
RECONCILE_GROUP = "tidemark-reconcile"
HEARTBEATS = f"__debezium-heartbeat.{TOPIC_PREFIX}"

_LOOK = (AclOperation.DESCRIBE,)
_READ = (AclOperation.READ, *_LOOK)
_WRITE = (AclOperation.WRITE, *_LOOK)
_OWN = (AclOperation.CREATE, AclOperation.READ, *_WRITE)


def connect_rights() -> list[AclBinding]:
    """What the Connect worker and its connector need in every project."""
    who = Principal.CONNECT
    configured = (*_OWN, AclOperation.DESCRIBE_CONFIGS)
    return [
        *_topics(who, configured, prefix=INTERNAL_TOPICS),
        *_topics(who, (AclOperation.CREATE, *_WRITE), prefix=f"{TOPIC_PREFIX}."),
        *_topics(who, (AclOperation.CREATE, *_WRITE), HEARTBEATS),
        *_bindings(who, ResourceType.GROUP, _READ, GROUP),
    ]


def declared_rights(manifest: Manifest, *, offsets_topic: str) -> list[AclBinding]:
    """What the declared sources and sinks need.

    Args:
        manifest: the compiled project.
        offsets_topic: in which Kafka Connect stores how far its connectors are.
    """
    sources = [one for one in manifest.sources.values() if one.topic]
    read = {name for one in sources for name in _topics_read(one)}
    if any(one.format is SourceFormat.DEBEZIUM for one in sources):
        read.add(offsets_topic)
    events = {one.topic or "" for one in sources if one.format is not SourceFormat.DEBEZIUM}
    delivered = {one.target for one in manifest.sinks.values() if one.system is SinkSystem.KAFKA}
    streams, sinks = Principal.STREAMS, Principal.SINKS
    return [
        *_topics(streams, _READ, *sorted(read)),
        *_bindings(streams, ResourceType.GROUP, _READ, SPARK_GROUPS, prefix=True),
        *_bindings(streams, ResourceType.GROUP, _READ, RECONCILE_GROUP),
        *_topics(sinks, _OWN, MARKS, *sorted(delivered)),
        *_bindings(sinks, ResourceType.GROUP, _READ, CLIENT_PREFIX, prefix=True),
        *_bindings(sinks, ResourceType.TRANSACTIONAL_ID, _WRITE, CLIENT_PREFIX, prefix=True),
        *_topics(Principal.LOADER, _WRITE, *sorted(events)),
    ]


def grant_declared(settings: Settings, manifest: Manifest) -> None:
    """With security, grant clients access to the topics of a manifest, and to no others.

    Raises:
        PartFailedError: the broker refuses a change.
        confluent_kafka.KafkaException: no broker answers.
    """
    if settings.security.enabled:
        rights = declared_rights(manifest, offsets_topic=settings.kafka_connect.offsets_topic)
        users = (Principal.STREAMS, Principal.SINKS, Principal.LOADER)
        grant(admin(settings), rights, *users)


def grant(client: AdminClient, wanted: Sequence[AclBinding], *principals: Principal) -> None:
    """Grant the principals these rights, and revoke all others.

    Raises:
        PartFailedError: the broker refuses a change.
    """
    try:
        held = {one for name in principals for one in held_rights(client, name)}
        missing = [one for one in wanted if one not in held]
        surplus = [_filter_of(one) for one in held - set(wanted)]
        if missing:
            asked = client.create_acls(missing, request_timeout=ANSWER_SECONDS)
            for answer in asked.values():
                answer.result()
        if surplus:
            asked = client.delete_acls(surplus, request_timeout=ANSWER_SECONDS)
            for answer in asked.values():
                answer.result()
    except KafkaException as error:
        problem = f"refuses a change of rights: {error.args[0].str()}"
        raise PartFailedError("kafka", problem, log=None) from error


def held_rights(client: AdminClient, principal: Principal) -> list[AclBinding]:
    """The rights of a principal at the broker."""
    every = AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        _user(principal),
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    asked = client.describe_acls(every, request_timeout=ANSWER_SECONDS)
    found: list[AclBinding] = asked.result()
    return found


def _topics_read(source: SourceEntry) -> Iterator[str]:
    """A source's topic, and the transaction topic of its database."""
    topic = source.topic or ""
    yield topic
    if source.table and (beside := transaction_topic(topic, source.table)):
        yield beside


def _topics(
    who: Principal, operations: Sequence[AclOperation], *names: str, prefix: str = ""
) -> Iterator[AclBinding]:
    if prefix:
        yield from _bindings(who, ResourceType.TOPIC, operations, prefix, prefix=True)
    yield from _bindings(who, ResourceType.TOPIC, operations, *names)


def _bindings(
    who: Principal,
    kind: ResourceType,
    operations: Sequence[AclOperation],
    *names: str,
    prefix: bool = False,
) -> Iterator[AclBinding]:
    pattern = ResourcePatternType.PREFIXED if prefix else ResourcePatternType.LITERAL
    for name in names:
        for operation in operations:
            yield AclBinding(
                kind, name, pattern, _user(who), "*", operation, AclPermissionType.ALLOW
            )


def _filter_of(one: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        one.restype,
        one.name,
        one.resource_pattern_type,
        one.principal,
        one.host,
        one.operation,
        one.permission_type,
    )


def _user(principal: Principal) -> str:
    return f"User:{principal}"

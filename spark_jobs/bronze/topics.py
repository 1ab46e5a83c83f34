"""A topic's id and offsets, from Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.bronze.errors import TopicMissingError, failure
from spark_jobs.errors import LakehouseError

TIMEOUT_SECONDS = 10
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001


@dataclass(frozen=True)
class TopicFacts:
    """A topic's current state.

    Attributes:
        topic_id: changes if the topic is deleted and created again.
        first: first available offset, by partition.
        end: offset of the next record, by partition.
    """

    topic: str
    topic_id: str
    first: Mapping[int, int]
    end: Mapping[int, int]


class Topics:
    """Queries a Kafka cluster; thread-safe.

    Results are awaited without a timeout of our own, because the client has one. A result that
    nobody awaits may arrive when the client is garbage, and a client that is collected in its own
    thread aborts the process.
    """

    def __init__(self, access: KafkaAccess) -> None:
        self.access = access
        self._admin = AdminClient(
            {**access.librdkafka(), "socket.timeout.ms": TIMEOUT_SECONDS * 1000}
        )

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The id of each topic that exists, by name.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker rejects the login or the request, or its certificate is not
                trusted.
        """
        names = sorted(set(topics))
        if not names:
            return {}
        answers = self._admin.describe_topics(
            TopicCollection(names), request_timeout=TIMEOUT_SECONDS
        )
        found = {}
        for name, answer in answers.items():
            try:
                found[name] = answer.result()
            except KafkaException as error:
                if error.args[0].code() not in _MISSING:
                    raise self._failure(error) from error
        return {name: str(topic.topic_id) for name, topic in found.items()}

    def facts(self, topic: str) -> TopicFacts:
        """Id and offsets of a topic.

        Raises:
            TopicMissingError: the topic does not exist.
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker rejects the login or the request, or its certificate is not
                trusted.
        """
        ids = self.ids([topic])
        if topic not in ids:
            raise TopicMissingError(topic)
        try:
            listed = self._admin.list_topics(topic, timeout=TIMEOUT_SECONDS)
            partitions = sorted(listed.topics[topic].partitions)
            return TopicFacts(
                topic=topic,
                topic_id=ids[topic],
                first=self._offsets(topic, partitions, OffsetSpec.earliest()),
                end=self._offsets(topic, partitions, OffsetSpec.latest()),
            )
        except KafkaException as error:
            if error.args[0].code() in _MISSING:
                raise TopicMissingError(topic) from error
            raise self._failure(error) from error

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """The offset of the next record, by topic and partition; only topics that exist.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker rejects the login or the request, or its certificate is not
                trusted.
        """
        try:
            listed = self._admin.list_topics(timeout=TIMEOUT_SECONDS).topics
            names = listed.keys() & set(topics)
            places = [
                TopicPartition(name, part) for name in names for part in listed[name].partitions
            ]
            found: dict[str, dict[int, int]] = {name: {} for name in names}
            for place, offset in self._listed(places, OffsetSpec.latest()):
                found[place.topic][place.partition] = offset
        except KafkaException as error:
            raise self._failure(error) from error
        return found

    def _failure(self, error: KafkaException) -> LakehouseError:
        # The reason of a failed connection is delivered by poll.
        self._admin.poll(0)
        return failure(self.access, error.args[0])

    def _offsets(self, topic: str, partitions: list[int], spec: OffsetSpec) -> dict[int, int]:
        places = [TopicPartition(topic, partition) for partition in partitions]
        return {place.partition: offset for place, offset in self._listed(places, spec)}

    def _listed(
        self, places: list[TopicPartition], spec: OffsetSpec
    ) -> Iterator[tuple[TopicPartition, int]]:
        wanted = dict.fromkeys(places, spec)
        if not wanted:
            return
        answers = self._admin.list_offsets(wanted, request_timeout=TIMEOUT_SECONDS)
        for place, answer in answers.items():
            yield place, int(answer.result().offset)

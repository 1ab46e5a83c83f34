"""What Kafka says of a topic: its identity and the offsets that it holds."""

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
    """A topic as it is now.

    Attributes:
        topic_id: changes when a topic is deleted and created again under the same name.
        first: the first offset that is still held, by partition.
        end: the offset that the next record gets, by partition.
    """

    topic: str
    topic_id: str
    first: Mapping[int, int]
    end: Mapping[int, int]


class Topics:
    """Asks one Kafka cluster; safe for several threads.

    Answers are waited for without a limit of their own: the client itself gives a request up. An
    answer that nobody waits for comes while the client may be garbage, and a client that is
    collected in its own thread aborts the process.
    """

    def __init__(self, access: KafkaAccess) -> None:
        self.access = access
        self._admin = AdminClient(
            {**access.librdkafka(), "socket.timeout.ms": TIMEOUT_SECONDS * 1000}
        )

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """The identity of each topic that exists.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker refuses the login or the request, or we its certificate.
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
        """Identity and offsets of a topic.

        Raises:
            TopicMissingError: there is no such topic.
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker refuses the login or the request, or we its certificate.
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
        """The offset that the next record gets, by topic and partition; of topics that exist.

        Raises:
            KafkaUnreachableError: no broker answers.
            LakehouseError: the broker refuses the login or the request, or we its certificate.
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
        # Why connections fail is told to whoever polls.
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

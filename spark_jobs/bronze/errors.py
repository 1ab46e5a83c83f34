"""Conditions of the way from Kafka to bronze: what is gone, and what must be decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.errors import LakehouseError, RefusedError


@dataclass(frozen=True, order=True)
class OffsetRange:
    """Offsets of one partition, from the first to before the last."""

    partition: int
    start: int
    end: int

    def __str__(self) -> str:
        return f"partition {self.partition}: {self.start} to {self.end - 1}"


def positions(offsets: Mapping[int, int]) -> str:
    """Offsets by partition, as text.

    >>> positions({1: 7, 0: 5})
    'partition 0: 5, partition 1: 7'
    """
    return ", ".join(f"partition {part}: {at}" for part, at in sorted(offsets.items())) or "none"


class TopicMissingError(LakehouseError):
    """The topic does not exist (yet)."""

    condition = "TOPIC_MISSING"

    def __init__(self, topic: str) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic!r} does not exist",
            hint="It is waited for. Create it, start its producer, or mend the source's topic.",
        )


class KafkaUnreachableError(LakehouseError):
    """No broker answers."""

    condition = "KAFKA_UNREACHABLE"

    def __init__(self, servers: str, cause: str) -> None:
        self.servers = servers
        super().__init__(
            f"no Kafka broker answers at {servers!r}",
            detail=f"{cause}.",
            hint="Start the broker (locally: make up), or mend kafka_bootstrap_servers.",
        )


def failure(access: KafkaAccess, error: Any) -> LakehouseError:
    """What a client's failure is: refused by one of the two sides, or nobody there.

    Args:
        access: how the client asked.
        error: the client's ``KafkaError``.
    """
    refused = access.refusal(error.name(), error.str())
    return refused or KafkaUnreachableError(access.servers, str(error))


class TopicRecreatedError(RefusedError):
    """The topic of this name is another one than bronze was reading."""

    condition = "TOPIC_RECREATED"

    def __init__(
        self,
        topic: str,
        *,
        known_id: str,
        found_id: str,
        read_to: Mapping[int, int],
        unread: Sequence[OffsetRange],
    ) -> None:
        self.topic = topic
        self.known_id = known_id
        self.found_id = found_id
        self.read_to = dict(read_to)
        self.unread = tuple(unread)
        waiting = "; ".join(map(str, self.unread)) or "no records"
        super().__init__(
            f"topic {topic!r} was deleted and created again",
            detail=f"Bronze read the topic with id {known_id}; its next offsets were "
            f"{positions(read_to)}, and what that topic held from there on is gone. "
            f"The topic of that name now has id {found_id} and holds {waiting}.",
            hint="Recover the lost records from their producer, then move the source to a new "
            "name, whose bronze table starts with the new topic.",
        )


class OffsetsExpiredError(RefusedError):
    """Kafka's retention deleted records before bronze read them."""

    condition = "OFFSETS_EXPIRED"

    def __init__(self, topic: str, lost: Sequence[OffsetRange]) -> None:
        self.topic = topic
        self.lost = tuple(lost)
        super().__init__(
            f"topic {topic!r} lost records that bronze had not read",
            detail=f"Gone are {'; '.join(map(str, self.lost))}.",
            hint="Recover them from their producer or a backup of the topic; lengthen the "
            "topic's retention; then move the source to a new name, or restore the topic.",
        )


class DataLossError(RefusedError):
    """Spark saw offsets that the topic does not have, in a way that no check explains."""

    condition = "DATA_LOSS"

    def __init__(self, topic: str, cause: str) -> None:
        self.topic = topic
        super().__init__(
            f"topic {topic!r} does not hold the offsets that bronze was reading",
            detail=cause,
            hint="Compare the topic with the bronze table: tidemark reconcile.",
        )


class CheckpointLostError(RefusedError):
    """The bronze table holds records, and where to go on is not known."""

    condition = "CHECKPOINT_LOST"

    def __init__(self, source: str, checkpoint: str) -> None:
        self.source = source
        self.checkpoint = checkpoint
        super().__init__(
            f"bronze table {source!r} has records but no checkpoint",
            detail=f"{checkpoint} is missing or empty; reading the topic from its start would "
            "store its records twice.",
            hint="Restore that directory from a backup, or remove the bronze table together with "
            "its silver tables to read the topic again from its first offset.",
        )

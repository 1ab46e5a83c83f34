"""Error conditions between Kafka and bronze."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from spark_jobs.access.kafka import KafkaAccess
from spark_jobs.errors import LakehouseError, RefusedError


@dataclass(frozen=True, order=True)
class OffsetRange:
    """Offsets of one partition; ``end`` is exclusive."""

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
    topic: str
    primary = "topic {topic!r} does not exist"
    hint = "The stream waits for it. Create it, start its producer, or fix the source's topic."


class KafkaUnreachableError(LakehouseError):
    """No broker answers."""

    condition = "KAFKA_UNREACHABLE"
    servers: str
    cause: str
    primary = "no Kafka broker answers at {servers!r}"
    detail = "{cause}."
    hint = "Start the broker (locally: make up), or fix kafka_bootstrap_servers."


def failure(access: KafkaAccess, error: Any) -> LakehouseError:
    """The error for a client's failure: rejected by either side, or unreachable.

    Args:
        access: the client's login.
        error: the client's ``KafkaError``.
    """
    refused = access.refusal(error.name(), error.str())
    return refused or KafkaUnreachableError(access.servers, str(error))


class TopicRecreatedError(RefusedError):
    """The topic was deleted and created again."""

    condition = "TOPIC_RECREATED"
    topic: str
    _: KW_ONLY
    known_id: str
    found_id: str
    read_to: Mapping[int, int]
    unread: Sequence[OffsetRange]
    primary = "topic {topic!r} was deleted and created again"
    detail = (
        "Bronze read the topic with id {known_id}; its next offsets were {next_offsets}, and later "
        "records of that topic are lost. The topic of that name now has id {found_id} and holds "
        "{waiting}."
    )
    hint = (
        "Recover the lost records from their producer, then move the source to a new name, whose "
        "bronze table starts with the new topic. If bronze has no record of the old topic: "
        "tidemark source resume SOURCE"
    )

    @property
    def next_offsets(self) -> str:
        return positions(self.read_to)

    @property
    def waiting(self) -> str:
        return "; ".join(map(str, self.unread)) or "no records"


class TopicTruncatedError(RefusedError):
    """The topic lost records at its end that bronze had read."""

    condition = "TOPIC_TRUNCATED"
    topic: str
    _: KW_ONLY
    read_to: Mapping[int, int]
    ends: Mapping[int, int] = field(default_factory=dict)
    other: Mapping[int, int] = field(default_factory=dict)
    primary = "topic {topic!r} lost records that bronze has read"
    detail = (
        "It is the same topic, and bronze would have continued at {next_offsets}. {found} Newer "
        "records at the lost offsets are not in bronze."
    )
    hint = (
        "Look for a leader that was elected with records missing, or a restored disk. Bronze has "
        "the records that the topic lost. Let the producer send the records that bronze does not "
        "have, then move the source to a new name, whose bronze table starts with the current "
        "topic."
    )

    @property
    def next_offsets(self) -> str:
        return positions(self.read_to)

    @property
    def found(self) -> str:
        if self.ends:
            return f"It ends at {positions(self.ends)}."
        return f"It holds other records now at {positions(self.other)}."


class OffsetsExpiredError(RefusedError):
    """Kafka's retention deleted records before bronze read them."""

    condition = "OFFSETS_EXPIRED"
    topic: str
    lost: Sequence[OffsetRange]
    primary = "topic {topic!r} lost records that bronze had not read"
    detail = "The lost offsets are {lost:; }."
    hint = (
        "Recover them from their producer or a backup of the topic; increase the topic's "
        "retention; then restore the topic, or continue without them: tidemark source resume "
        "SOURCE --let-pass"
    )


class DataLossError(RefusedError):
    """Spark reports missing offsets that no check of ours explains."""

    condition = "DATA_LOSS"
    topic: str
    cause: str
    primary = "topic {topic!r} does not hold the offsets that bronze was reading"
    detail = "{cause}"
    hint = "Compare the topic with the bronze table: tidemark reconcile."


class RecordUnreadableError(RefusedError):
    """A record has a Kafka timestamp that Spark cannot hold."""

    condition = "RECORD_UNREADABLE"
    topic: str
    offsets: Mapping[int, int]
    primary = "Spark cannot read a record of topic {topic!r}"
    detail = "Its Kafka timestamp is beyond the year 294,000. It comes at or after {next_offsets}."
    hint = (
        "Its producer probably sends nanoseconds: correct it, and set the topic's "
        "message.timestamp.after.max.ms. Then delete the records up to the unreadable one with "
        "kafka-delete-records.sh, and continue: tidemark source resume SOURCE --let-pass"
    )

    @property
    def next_offsets(self) -> str:
        return positions(self.offsets)


_RESUME = (
    "Restore that directory from a backup, or let the source continue from its bronze "
    "table: tidemark source resume {source}"
)


class CheckpointLostError(RefusedError):
    """The bronze table has records, but the checkpoint is missing."""

    condition = "CHECKPOINT_LOST"
    source: str
    checkpoint: str
    primary = "bronze table {source!r} has records but no checkpoint"
    detail = (
        "{checkpoint} is missing or empty; reading the topic from its start would store its "
        "records twice."
    )
    hint = _RESUME


class CheckpointDamagedError(RefusedError):
    """The checkpoint cannot be used to resume."""

    condition = "CHECKPOINT_DAMAGED"
    source: str
    problem: str
    primary = "the checkpoint of bronze table {source!r} cannot be used"
    detail = "{problem}; continuing from it could skip records or store them twice."
    hint = _RESUME


class RecordsExpiredError(LakehouseError):
    """Resuming from the table would skip records that Kafka has deleted."""

    condition = "RECORDS_EXPIRED"
    source: str
    lost: Sequence[OffsetRange]
    primary = "source {source!r} cannot continue without a gap"
    detail = "Kafka deleted records that bronze had not read: {lost:; }."
    hint = (
        "Let the producer send them again if possible. To continue without them, add --let-pass; "
        "the gap is recorded with your reason."
    )


class SeedRejectedError(RefusedError):
    """A file has more bad lines than its source allows."""

    condition = "SEED_REJECTED"
    source: str
    path: str
    _: KW_ONLY
    bad: int
    lines: int
    unit: str
    most: float
    first: str
    primary = 'source "{source}": {bad:,} of {lines:,} {unit}s of {path} cannot be read'
    detail = "{first}. At most {most:.0%} may be rejected; the table does not change."
    hint = "Correct the file, or raise most_rejected in the source."

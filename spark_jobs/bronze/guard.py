"""Checks that a stream may resume: the topic is the same, and no unread record was deleted.

Spark compares only offsets, so it would continue in a recreated topic that has grown past the old
offset. So the topic's id is stored next to the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.bronze.errors import OffsetRange, OffsetsExpiredError, TopicRecreatedError
from spark_jobs.bronze.topics import TopicFacts


def check_topic(facts: TopicFacts, known_id: str | None, *, read_to: Mapping[int, int]) -> None:
    """Fail if records are lost.

    Args:
        facts: the topic's current state.
        known_id: id of the topic that was read so far; None before the first read.
        read_to: the next offset to read, by partition; empty before the first read.

    Raises:
        TopicRecreatedError: the topic was recreated.
        OffsetsExpiredError: unread records were deleted.
    """
    if known_id is not None and facts.topic_id != known_id:
        raise TopicRecreatedError(
            facts.topic,
            known_id=known_id,
            found_id=facts.topic_id,
            read_to=read_to,
            unread=[
                OffsetRange(partition, first, facts.end[partition])
                for partition, first in sorted(facts.first.items())
                if facts.end[partition] > first
            ],
        )
    # A partition that was added after the last read is read from its first record, which is 0.
    lost = [
        OffsetRange(partition, read_to.get(partition, 0), first)
        for partition, first in sorted(facts.first.items())
        if read_to and first > read_to.get(partition, 0)
    ]
    if lost:
        raise OffsetsExpiredError(facts.topic, lost)

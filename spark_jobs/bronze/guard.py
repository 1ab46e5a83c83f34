"""Whether a stream may go on: the same topic, and everything that was not read is still there.

Spark compares offsets only, so it reads on in a topic that was created again and has grown past
the old offset. The topic's identity is therefore kept beside the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.bronze.errors import OffsetRange, OffsetsExpiredError, TopicRecreatedError
from spark_jobs.bronze.topics import TopicFacts


def check_topic(facts: TopicFacts, known_id: str | None, *, read_to: Mapping[int, int]) -> None:
    """Refuse to go on where records are lost.

    Args:
        facts: the topic as it is now.
        known_id: the identity of the topic that was read so far; None before the first read.
        read_to: the next offset to read, by partition; empty before the first read.

    Raises:
        TopicRecreatedError: the topic is another one.
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
    lost = [
        OffsetRange(partition, next_offset, facts.first[partition])
        for partition, next_offset in sorted(read_to.items())
        if facts.first.get(partition, next_offset) > next_offset
    ]
    if lost:
        raise OffsetsExpiredError(facts.topic, lost)

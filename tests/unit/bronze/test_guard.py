"""Whether a stream may continue, from Kafka's offsets and those that were read."""

from __future__ import annotations

import pytest

from spark_jobs.bronze.errors import OffsetRange, OffsetsExpiredError, TopicRecreatedError
from spark_jobs.bronze.guard import check_topic
from spark_jobs.bronze.topics import TopicFacts


def facts(first: dict[int, int], end: dict[int, int], *, topic_id: str = "A") -> TopicFacts:
    return TopicFacts(topic="t", topic_id=topic_id, first=first, end=end)


@pytest.mark.parametrize(
    ("read_to", "known"), [({}, None), ({0: 5}, "A"), ({0: 3, 1: 0}, "A"), ({0: 9}, "A")]
)
def test_a_topic_that_still_holds_all_unread_records_passes(
    read_to: dict[int, int], known: str | None
):
    check_topic(facts({0: 3, 1: 0}, {0: 9, 1: 4}), known, read_to=read_to)


def test_records_that_expired_unread_are_named_exactly():
    with pytest.raises(OffsetsExpiredError) as caught:
        check_topic(facts({0: 30, 1: 7}, {0: 40, 1: 7}), "A", read_to={0: 12, 1: 7})
    assert caught.value.lost == (OffsetRange(0, 12, 30),)
    assert "partition 0: 12 to 29" in caught.value.render()


def test_a_topic_that_was_created_again_is_refused_even_when_it_has_grown_past():
    with pytest.raises(TopicRecreatedError) as caught:
        check_topic(facts({0: 0, 1: 2}, {0: 50, 1: 2}, topic_id="B"), "A", read_to={0: 20})
    error = caught.value
    assert (error.known_id, error.found_id) == ("A", "B")
    assert error.unread == (OffsetRange(0, 0, 50),)
    assert error.read_to == {0: 20}


def test_a_partition_that_was_added_is_no_loss():
    check_topic(facts({0: 0, 1: 0}, {0: 5, 1: 5}), "A", read_to={0: 5})


def test_an_added_partition_whose_records_expired_unread_is_named():
    with pytest.raises(OffsetsExpiredError) as caught:
        check_topic(facts({0: 0, 1: 7}, {0: 5, 1: 9}), "A", read_to={0: 5})
    assert caught.value.lost == (OffsetRange(1, 0, 7),)
    # Of a topic that was never read, the records before the first one are no loss.
    check_topic(facts({0: 0, 1: 7}, {0: 5, 1: 9}), "A", read_to={})

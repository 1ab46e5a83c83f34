"""Offsets that a consumer saw against offsets that bronze holds."""

from __future__ import annotations

from spark_jobs.bronze.reconcile import compare
from spark_jobs.bronze.topics import TopicFacts

FACTS = TopicFacts(topic="t", topic_id="A", first={0: 2, 1: 0}, end={0: 8, 1: 3})
SEEN = {0: {2, 3, 5, 6, 7}, 1: {0, 1, 2}}


def test_all_there_with_gaps_that_hold_no_record():
    found = compare(FACTS, SEEN, {0: [0, 1, 2, 3, 5, 6, 7], 1: [2, 0, 1]})
    assert (found.kafka, found.bronze, found.expired, found.lag) == (8, 10, 2, 0)
    assert found.problems == ()


def test_what_is_still_to_read_is_lag_and_not_loss():
    found = compare(FACTS, SEEN, {0: [2, 3, 5]})
    assert (found.lag, found.problems) == (5, ())


def test_lost_repeated_and_alien_records_are_named():
    found = compare(FACTS, SEEN, {0: [2, 4, 6, 6, 7], 1: [0, 1, 2]})
    assert found.problems == (
        "partition 0: 1 rows of bronze repeat an offset",
        "2 records in Kafka and not in bronze: partition 0: 3 to 3; partition 0: 5 to 5",
        "1 records in bronze and not in Kafka: partition 0: 4 to 4",
    )

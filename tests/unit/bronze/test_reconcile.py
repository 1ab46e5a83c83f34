"""Offsets that a consumer saw against offsets that bronze holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.bronze import reconcile
from spark_jobs.bronze.reconcile import compacted_away, compare
from spark_jobs.bronze.topics import TopicFacts, Topics

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


def test_records_that_compaction_removed_are_counted_and_are_no_problem():
    bronze = {0: [0, 1, 2, 3, 4, 5, 6, 7], 1: [0, 1, 2]}
    found = compare(FACTS, SEEN, bronze, compacted=lambda asked: asked)
    assert (found.compacted, found.problems) == (1, ())
    found = compare(FACTS, SEEN, bronze, compacted=lambda _: {0: set()})
    assert found.compacted == 0
    assert found.problems == ("1 records in bronze and not in Kafka: partition 0: 4 to 4",)


def test_compaction_removes_what_has_a_later_record_and_deletes(tmp_path: Path):
    records = [
        (0, 0, b"a", b"1"),
        (0, 1, b"b", b"1"),
        (0, 2, b"a", b"2"),
        # A delete, which goes last.
        (0, 3, b"c", None),
        # Of another partition.
        (1, 4, b"b", b"2"),
        # Forgotten in bronze; in Kafka a delete followed.
        (1, 5, None, None),
        (1, 6, None, b"3"),
        (1, 7, None, b"4"),
    ]
    parts, offsets, keys, values = zip(*records, strict=True)
    rows = {
        "partition": pa.array(parts, pa.int32()),
        "offset": pa.array(offsets, pa.int64()),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
    }
    write_deltalake(tmp_path, pa.table(rows))
    found = compacted_away(str(tmp_path), {0: {0, 1, 2, 3}, 1: {4, 5, 6}})
    assert found == {0: {0, 3}, 1: {5}}


def test_records_that_expire_meanwhile_are_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    later = replace(FACTS, first={0: 6, 1: 0}, end={0: 20, 1: 9})

    class Retention:
        """Answers of the broker; its retention deletes records after the first one."""

        access = None
        answers = iter([FACTS, later])

        def facts(self, topic: str) -> TopicFacts:
            assert topic == "t"
            return next(self.answers)

    def consumed(access: object, facts: TopicFacts) -> dict[int, set[int]]:
        # The consumer went on where the topic began then.
        assert facts == FACTS
        return {0: {6, 7}, 1: {0, 1, 2}}

    rows = {
        "partition": pa.array([0] * 6 + [1] * 3, pa.int32()),
        "offset": pa.array([2, 3, 4, 5, 6, 7, 0, 1, 2], pa.int64()),
        "key": pa.nulls(9, pa.binary()),
        "value": pa.array([b"v"] * 9, pa.binary()),
    }
    write_deltalake(tmp_path, pa.table(rows))
    monkeypatch.setattr(reconcile, "consumed_offsets", consumed)
    found = reconcile.reconcile_bronze(cast(Topics, Retention()), "t", location=str(tmp_path))
    assert found.problems == ()
    assert (found.kafka, found.bronze, found.expired, found.lag) == (5, 9, 4, 0)

"""A topic that lost its last records is recognised even after it grew past the old offset."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.bronze.errors import TopicTruncatedError
from spark_jobs.bronze.tail import Landed, Record, check_tail, last_landed
from spark_jobs.bronze.topics import TopicFacts

AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, UTC)
MILLISECONDS = 1_767_323_045_678
KEPT = Record(MILLISECONDS, (b"k", b"v"))


def check(
    end: int, held: Mapping[int, Record], *, landed: Record = KEPT, first: int = 0, at: int = 11
) -> None:
    check_tail(
        TopicFacts(topic="t", topic_id="A", first={0: first}, end={0: end}),
        read_to={0: 12},
        landed={0: Landed(at, landed)},
        held=lambda asked: {
            part: {at: held[at] for at in offsets if at in held} for part, offsets in asked.items()
        },
    )


@pytest.mark.parametrize(
    "held",
    [
        Record(MILLISECONDS, (b"k", b"other")),
        Record(MILLISECONDS, (b"other", b"v")),
        Record(MILLISECONDS + 1, (b"k", b"v")),
        Record(MILLISECONDS, (b"k", None)),
    ],
)
def test_another_record_at_the_last_offset_is_refused(held: Record) -> None:
    with pytest.raises(TopicTruncatedError) as caught:
        check(50, {11: held})
    assert caught.value.other == {0: 11}
    assert "partition 0: 11" in caught.value.render()
    assert "continued at partition 0: 12" in caught.value.render()


def test_a_topic_that_ends_before_the_next_offset_is_refused() -> None:
    with pytest.raises(TopicTruncatedError) as caught:
        check(9, {})
    assert caught.value.ends == {0: 9}


@pytest.mark.parametrize(
    ("held", "landed", "first", "at"),
    [
        ({11: KEPT}, KEPT, 0, 11),
        # Compacted away, or the mark of a transaction.
        ({}, KEPT, 0, 11),
        ({9: KEPT}, KEPT, 0, 9),
        # Expired, whatever is there now.
        ({11: Record(1, (b"x", b"y"))}, KEPT, 12, 11),
        # Forgotten in bronze.
        ({11: KEPT}, Record(MILLISECONDS, None), 0, 11),
        ({11: Record(None, (b"k", b"v"))}, KEPT, 0, 11),
    ],
)
def test_the_same_record_or_none_continues(
    held: Mapping[int, Record], landed: Record, first: int, at: int
) -> None:
    check(50, held, landed=landed, first=first, at=at)


@pytest.mark.parametrize(
    ("landed", "first", "lacking"),
    [
        # The table ends two records before the checkpoint.
        ({0: Landed(9, KEPT)}, 0, {0: 10}),
        # It has none of the last offsets.
        ({}, 0, {0: 9}),
        # The records have expired.
        ({}, 12, {}),
        ({0: Landed(11, KEPT)}, 0, {}),
    ],
)
def test_a_table_that_ends_before_its_checkpoint_is_found(
    landed: dict[int, Landed], first: int, lacking: dict[int, int]
) -> None:
    asked: list[Mapping[int, range]] = []

    def held(offsets: Mapping[int, range]) -> dict[int, dict[int, Record]]:
        asked.append(offsets)
        return {
            part: {at: KEPT for at in (9, 10, 11) if at in one} for part, one in offsets.items()
        }

    facts = TopicFacts(topic="t", topic_id="A", first={0: first}, end={0: 50})
    assert check_tail(facts, read_to={0: 12}, landed=landed, held=held) == lacking
    assert all(one.stop == 12 for one in asked[0].values())


def test_a_partition_without_bronze_rows_continues() -> None:
    facts = TopicFacts(topic="t", topic_id="A", first={0: 0, 1: 0}, end={0: 5, 1: 5})
    check_tail(facts, read_to={0: 3}, landed={}, held=lambda _: {})


def test_the_last_records_of_bronze_are_found_and_expired_ones_have_a_time(
    tmp_path: Path,
) -> None:
    rows = pa.table(
        {
            "key": pa.array([b"a", b"b", None, b"d", b"e"], pa.binary()),
            "value": pa.array([b"1", None, None, b"4", b"5"], pa.binary()),
            "partition": pa.array([0, 0, 1, 2, 3], pa.int32()),
            "offset": pa.array([10, 11, 7, 90, 12], pa.int64()),
            "timestamp": pa.array([AT] * 5, pa.timestamp("us", "UTC")),
        }
    )
    write_deltalake(tmp_path, rows)
    # What bronze has after the offset is of a batch that has not ended.
    found = last_landed(str(tmp_path), {0: 12, 1: 9, 2: 400, 3: 12, 4: 0})
    assert found == {
        0: Landed(11, Record(MILLISECONDS, (b"b", None))),
        1: Landed(7, Record(MILLISECONDS, None)),
    }


@pytest.mark.parametrize("at", [-1, 1_767_323_045_678_000, 9_000_000_000_000_000])
def test_a_producers_clock_may_tell_any_time(tmp_path: Path, at: int) -> None:
    # Python's datetime ends with the year 9999, as when a producer sends microseconds.
    rows = pa.table(
        {
            "key": pa.array([b"k"], pa.binary()),
            "value": pa.array([b"v"], pa.binary()),
            "partition": pa.array([0], pa.int32()),
            "offset": pa.array([11], pa.int64()),
            "timestamp": pa.array([at * 1000]).cast(pa.timestamp("us", "UTC")),
        }
    )
    write_deltalake(tmp_path, rows)
    found = last_landed(str(tmp_path), {0: 12})
    assert found == {0: Landed(11, Record(at, (b"k", b"v")))}

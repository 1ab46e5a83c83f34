"""The offsets at which reading a topic continues, from its bronze table."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.bronze.errors import OffsetRange
from spark_jobs.bronze.position import (
    Start,
    next_offsets,
    read_start,
    start_after,
    starting_offsets,
    write_start,
)
from spark_jobs.bronze.topics import TopicFacts

HELD = {0: 5, 1: 3}


def facts(first: dict[int, int], end: dict[int, int]) -> TopicFacts:
    return TopicFacts("t", "the id", first, end)


@pytest.fixture
def table(tmp_path: Path) -> str:
    place = str(tmp_path / "bronze")
    for offsets in ([(0, 0), (0, 4), (1, 0)], [(0, 3), (1, 2)]):
        partitions, numbers = zip(*offsets, strict=True)
        rows = {
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array(numbers, pa.int64()),
        }
        write_deltalake(place, pa.table(rows), mode="append")
    return place


def test_the_highest_offset_of_each_partition_counts(table: str) -> None:
    assert next_offsets(table) == HELD


def test_records_that_expired_are_left_out_by_name() -> None:
    found = start_after(HELD, facts({0: 5, 1: 7, 2: 1}, {0: 9, 1: 9, 2: 4}))
    assert found == Start(HELD, {0: 5, 1: 7}, (OffsetRange(1, 3, 7),))


def test_a_start_is_kept_and_spark_gets_every_partition(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "2")
    assert read_start(checkpoint) is None
    start = Start(HELD, {0: 5, 1: 7}, (OffsetRange(1, 3, 7),))
    write_start(checkpoint, start, by="me@here", reason="the disk was replaced", at="now")
    assert read_start(checkpoint) == start
    known = facts({0: 0, 1: 7, 2: 0}, {0: 9, 1: 9, 2: 9})
    assert json.loads(starting_offsets(known, start)) == {"t": {"0": 5, "1": 7, "2": -2}}
    assert starting_offsets(known, None) == "earliest"

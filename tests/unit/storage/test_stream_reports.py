"""What a query's own report and its checkpoint say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from spark_jobs.storage.checkpoints import (
    last_committed,
    last_planned,
    planned,
    query_id,
    read_text,
    write_text,
)
from spark_jobs.streaming.progress import read_progress


def report(end: object, latest: object) -> dict[str, object]:
    return {
        "batchId": 4,
        "numInputRows": 12,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "sources": [{"endOffset": end, "latestOffset": latest}],
    }


def test_lag_is_reported_for_kafka_only():
    kafka = read_progress("q", report({"t": {"0": 5, "1": 2}}, {"t": {"0": 9, "1": 2, "2": 1}}))
    assert (kafka.batch_id, kafka.records, kafka.lag_records) == (4, 12, 5)
    assert kafka.at == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    assert read_progress("q", report({"reservoirVersion": 3}, None)).lag_records is None
    assert read_progress("q", report('{"t": {"0": 1}}', '{"t": {"0": 2}}')).lag_records == 1


def test_a_checkpoint_shows_planned_and_finished_batches(tmp_path: Path):
    place = str(tmp_path / "checkpoint")
    assert (last_planned(place), last_committed(place), read_text(place)) == (None, None, None)
    for batch in (9, 10, 11):
        write_text(f"{place}/offsets/{batch}", f'v1\n{{}}\n{{"t":{{"0":{batch}}}}}')
    for batch in (9, 10):
        write_text(f"{place}/commits/{batch}", "v1\n{}")
    (tmp_path / "checkpoint/offsets/.12.crc").write_text("")
    committed = last_committed(place)
    assert last_planned(place) == 11
    assert committed is not None
    assert (committed.batch_id, committed.offsets) == (10, {"t": {"0": 10}})


def test_a_checkpoint_shows_when_a_batch_was_planned_and_its_owner(tmp_path: Path):
    place = str(tmp_path / "checkpoint")
    assert query_id(place) is None
    write_text(f"{place}/metadata", '{"id":"a-b-c"}')
    write_text(f"{place}/offsets/3", 'v1\n{"batchTimestampMs":1767323045678}\n{"t":{"0":1}}')
    assert query_id(place) == "a-b-c"
    found = planned(place, 3)
    assert found is not None
    assert found.at == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)

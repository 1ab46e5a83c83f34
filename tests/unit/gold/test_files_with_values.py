"""Of a large table's files, those are read that may have the needed rows."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.gold.engine.step_values import StepValues
from spark_jobs.graph.runtime_filters import Needed, Values
from spark_jobs.storage import log


def read(files: pa.Table, needed: Needed) -> pa.Table:
    known = StepValues()
    known.add_table("big", lambda: files)
    found = known.files("big", needed)
    assert found is not None
    return found


def values(*numbers: int, kind: str = "bigint") -> Values:
    """The values of a step that has only these."""
    return Values(kind, nulls=False, intervals=[(one, one) for one in numbers])


def test_no_file_with_a_needed_row_is_left_out(tmp_path: Path) -> None:
    rng = random.Random(5)
    place = str(tmp_path)
    for _ in range(12):
        start = rng.randrange(100)
        keys = [rng.choice((None, start + rng.randrange(8))) for _ in range(5)]
        days = [date.fromordinal(730_000 + rng.randrange(30)) for _ in keys]
        schema = pa.schema([("Key", pa.int64()), ("day", pa.date32())])
        write_deltalake(place, pa.table({"Key": keys, "day": days}, schema=schema), mode="append")
    files = log.files(DeltaTable(place))
    left_out = 0
    for _ in range(50):
        key, day = rng.randrange(110), 730_000 + rng.randrange(30)
        number = day - date(1970, 1, 1).toordinal()
        references = [{"key": values(key)}, {"day": values(number, kind="date")}]
        needed = references if rng.random() < 0.5 else [references[0] | references[1]]
        chosen = set(read(files, needed).column("path").to_pylist())
        for path in files.column("path").to_pylist():
            held = pq.read_table(f"{place}/{path}").to_pylist()
            wanted = (
                [one["Key"] == key for one in held],
                [one["day"].toordinal() == day for one in held],
            )
            both = map(all, zip(*wanted, strict=True))
            if any(both) or (len(needed) == 2 and any(map(any, zip(*wanted, strict=True)))):
                assert path in chosen
            left_out += path not in chosen
    assert left_out > 200


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [
        ({"min.key": [0, 500], "max.key": [499, 1000]}, [True, False]),
        ({"min.key": [0, None], "max.key": [5, 1000]}, [False, True]),
        ({"min.key": [8, 5], "max.key": [9, None]}, [False, True]),
        ({"min.other": [0, 1], "max.other": [0, 1]}, [True, True]),
        ({"min.key": [0, 1], "path": ["a", "b"]}, [True, True]),
        ({"min.key": ["0", "1"], "max.key": ["0", "1"]}, [True, True]),
        ({"min.key": [], "max.key": []}, []),
    ],
)
def test_a_file_without_statistics_is_read(
    statistics: dict[str, list[object]], expected: list[bool]
) -> None:
    files = pa.table({**statistics, "at": pa.array(range(len(expected)), pa.int64())})
    found = read(files, [{"key": values(7)}])
    assert found.column("at").to_pylist() == [at for at, one in enumerate(expected) if one]


@pytest.mark.parametrize(("kind", "zone"), [("timestamp", "UTC"), ("timestamp_ntz", None)])
def test_statistics_of_times_are_truncated_to_milliseconds(kind: str, zone: str | None) -> None:
    # The file's last row is at 00:00:00.000999; the log says 00:00:00.
    bound = pa.array([datetime(2026, 1, 1)], pa.timestamp("us", zone))  # noqa: DTZ001
    files = pa.table({"min.at": bound, "max.at": bound})
    first = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1_000_000)
    for number, there in ((first - 1, 0), (first, 1), (first + 999, 1), (first + 1000, 0)):
        found = read(files, [{"at": values(number, kind=kind)}])
        assert found.num_rows == there
    # A time without a zone depends on the session's.
    other = "timestamp" if zone is None else "timestamp_ntz"
    assert read(files, [{"at": values(1, kind=other)}]).num_rows == 1


def test_without_a_value_no_file_is_read() -> None:
    files = pa.table({"min.key": [0], "max.key": [9]})
    assert read(files, [{"key": values()}]).num_rows == 0


def test_of_other_tables_nothing_is_known() -> None:
    assert StepValues().files("small", [{"key": values(1)}]) is None

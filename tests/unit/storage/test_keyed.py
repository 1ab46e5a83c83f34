"""Rows looked up, merged and appended by key without Spark, against a plain dictionary."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.storage import arrow_tables, policy
from spark_jobs.storage.delta import CHANGE_FEED, Txn
from spark_jobs.storage.errors import TableMovedError
from spark_jobs.storage.history import feed_files
from spark_jobs.storage.lookup import rows_with_keys
from spark_jobs.storage.plain import plain_table
from spark_jobs.storage.policy import Limit
from spark_jobs.storage.rows import Merge

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
# A value of each kind of key for a number, in an order that is not that of the numbers.
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "whole": (pa.int64(), lambda number: number - 50),
    "text": (pa.string(), lambda number: f"é{number % 7}'\"{number}"),
    "exact": (pa.decimal128(38, 2), lambda number: Decimal(number) + Decimal("0.01")),
    "day": (pa.date32(), lambda number: date.fromordinal(1 + number)),
    "bytes": (pa.binary(), lambda number: bytes([number % 256, 0, 255])),
}
KEYS = [["whole"], ["text"], ["exact", "day"], ["bytes", "whole"]]
SCHEMA = pa.schema(
    [(name, kind) for name, (kind, _) in KINDS.items()]
    + [("place", pa.string()), ("at", pa.timestamp("us", "UTC")), ("real", pa.float64())]
)
HOW = {
    "update": "NOT s.gone AND s.place > t.place",
    "insert": "NOT s.gone",
    "delete": "s.gone AND s.place > t.place",
}


def row(number: int, place: int) -> dict[str, Any]:
    keys = {name: value(number) for name, (_, value) in KINDS.items()}
    return {**keys, "place": f"{place:03}", "at": FIRST, "real": float("nan")}


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


@pytest.fixture
def location(tmp_path) -> str:
    """Some files, whose ranges of keys are apart or overlap."""
    for first, last in ((0, 40), (40, 60), (60, 100)):
        write_deltalake(
            str(tmp_path),
            table_of([row(number, 10) for number in range(first, last)]),
            mode="append",
            configuration=CHANGE_FEED,
        )
    return str(tmp_path)


def content(location: str) -> dict[int, str]:
    rows = DeltaTable(location).to_pyarrow_table(columns=["whole", "place"]).to_pylist()
    found = {one["whole"] + 50: one["place"] for one in rows}
    assert len(found) == len(rows)
    return found


def fed(location: str, version: int) -> set[tuple[int, str, str]]:
    files = feed_files(location, after=version - 1, upto=version)
    assert files is not None
    assert not files.added
    assert not files.removed
    names = ["whole", "place", "_change_type"]
    rows = [
        one
        for path in files.changes
        for one in pq.read_table(f"{location}/{path}", columns=names).to_pylist()
    ]
    found = {(one["whole"] + 50, one["place"], one["_change_type"]) for one in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("key", KEYS, ids="-".join)
def test_every_row_with_a_key_is_found(location: str, key: list[str]) -> None:
    asked = [3, 41, 99, 250]
    keys = table_of([row(number, 0) for number in asked]).select(key)
    found = rows_with_keys(location, keys, ["whole", "place"])
    assert found is not None
    numbers = {one + 50 for one in found.column("whole").to_pylist()}
    assert numbers & set(asked) == {3, 41, 99}
    assert found.num_rows < 100


def test_a_file_without_keys_has_no_bounds(tmp_path) -> None:
    """As of tombstones that hold nothing but a truncation."""
    numbers = pa.array([None], pa.int64())
    write_deltalake(str(tmp_path), pa.table({"whole": numbers, "place": ["t"]}))
    asked = pa.table({"whole": pa.array([1], pa.int64())})
    found = rows_with_keys(str(tmp_path), asked, ["place"])
    assert found is not None
    assert found.num_rows == 0
    write_deltalake(str(tmp_path), pa.table({"whole": [1], "place": ["x"]}), mode="append")
    found = rows_with_keys(str(tmp_path), asked, ["place"])
    assert found is not None
    assert found.column("place").to_pylist() == ["x"]


def test_a_table_that_lost_all_rows_has_none_with_a_key(location: str) -> None:
    DeltaTable(location).delete()
    keys = table_of([row(3, 0)])
    for key in KEYS:
        found = rows_with_keys(location, keys.select(key), ["place"])
        assert found is not None
        assert found.num_rows == 0
    source = table_of([row(3, 11), row(4, 11)]).append_column("gone", pa.array([False, True]))
    how = Merge(("whole",), tuple(SCHEMA.names), **HOW)
    arrow_tables.merge(DeltaTable(location), source, how, txn=Txn("app", 1))
    assert content(location) == {3: "011"}


def test_no_more_rows_are_looked_up_than_fit(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = table_of([row(number, 0) for number in range(20)]).select(["whole"])
    monkeypatch.setattr(policy, "RESULT", Limit(rows=19))
    assert rows_with_keys(location, keys, ["place"]) is None
    monkeypatch.setattr(policy, "RESULT", Limit(rows=20))
    found = rows_with_keys(location, keys, ["place"])
    assert found is not None
    assert found.num_rows == 20
    none = rows_with_keys(location, keys.slice(0, 0), ["place"])
    assert none is not None
    assert none.column_names == ["place"]
    assert none.num_rows == 0


@pytest.mark.parametrize("key", KEYS, ids="-".join)
@pytest.mark.parametrize("seed", range(3))
def test_a_merge_is_that_of_a_dictionary(location: str, key: list[str], seed: int) -> None:
    rng = random.Random(seed)
    expected = content(location)
    for step in range(1, 4):
        before = dict(expected)
        # Some batches are of old keys only, and reach some of the files only.
        numbers = rng.sample(range(120 if step > 1 else 50), 15)
        rows, gone = [], []
        for number in numbers:
            place, leaves = rng.randrange(5, 15), rng.random() < 0.4
            rows.append(row(number, place))
            gone.append(leaves)
            newer = number not in expected or f"{place:03}" > expected[number]
            if newer and leaves:
                expected.pop(number, None)
            elif newer:
                expected[number] = f"{place:03}"
        source = table_of(rows).append_column("gone", pa.array(gone))
        how = Merge(tuple(key), tuple(SCHEMA.names), **HOW)
        first = DeltaTable(location).version()
        arrow_tables.merge(DeltaTable(location), source, how, txn=Txn("app", step))
        assert content(location) == expected
        keys = table_of([row(number, 0) for number in range(130)]).select(key)
        found = rows_with_keys(location, keys, ["place"])
        assert found is not None
        assert found.num_rows == len(expected)
        version = DeltaTable(location).version()
        assert version == first + (before != expected)
        if before == expected:
            continue
        changed = {
            number for number in before | expected if before.get(number) != expected.get(number)
        }
        told = fed(location, version)
        assert {number for number, *_ in told} == changed
        for number in changed:
            kinds = {kind: place for one, place, kind in told if one == number}
            match before.get(number), expected.get(number):
                case None, new:
                    assert kinds == {"insert": new}
                case old, None:
                    assert kinds == {"delete": old}
                case old, new:
                    assert kinds == {"update_preimage": old, "update_postimage": new}


def test_a_transaction_is_committed_once(location: str) -> None:
    first = DeltaTable(location).version()
    source = table_of([row(500, 11)])
    arrow_tables.append(DeltaTable(location), source, txn=Txn("app", 7))
    how = Merge(("whole",), tuple(SCHEMA.names), **HOW)
    removal = source.append_column("gone", pa.array([False]))
    for number in (6, 7):
        arrow_tables.append(DeltaTable(location), source, txn=Txn("app", number))
        arrow_tables.merge(DeltaTable(location), removal, how, txn=Txn("app", number))
    assert DeltaTable(location).version() == first + 1
    arrow_tables.append(DeltaTable(location), table_of([row(501, 1)]), txn=Txn("other", 7))
    assert content(location).keys() >= {500, 501}
    assert DeltaTable(location).transaction_version("app") == 7


def test_a_commit_in_between_is_reported(location: str) -> None:
    one, other = DeltaTable(location), DeltaTable(location)
    arrow_tables.append(one, table_of([row(500, 11)]), txn=Txn("app", 1))
    source = table_of([row(3, 90)]).append_column("gone", pa.array([False]))
    how = Merge(("whole",), tuple(SCHEMA.names), **HOW)
    with pytest.raises(TableMovedError):
        arrow_tables.merge(other, source, how, txn=Txn("app", 2))
    with pytest.raises(TableMovedError):
        arrow_tables.append(other, table_of([row(501, 1)]), txn=Txn("app", 2))
    assert len(content(location)) == 101


@pytest.mark.parametrize(
    ("version", "more", "written"),
    [
        pytest.param(2, {}, True, id="2"),
        pytest.param(4, {}, True, id="4"),
        pytest.param(4, {"delta.constraints.c": "a > 0"}, False, id="4 with a constraint"),
        pytest.param(5, {}, False, id="5"),
    ],
)
def test_a_version_without_a_list_of_features_is_written_where_none_asks_for_more(
    tmp_path, version: int, more: dict[str, str], *, written: bool
) -> None:
    write_deltalake(str(tmp_path), pa.table({"a": [1]}), configuration=CHANGE_FEED)
    [log] = (tmp_path / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 1, "minWriterVersion": version}
        if "metaData" in action:
            action["metaData"]["configuration"] |= more
    log.write_text("\n".join(map(json.dumps, actions)))
    found = plain_table(str(tmp_path))
    assert found is not None
    assert found.written == written


def test_times_of_an_older_writer_do_not_overflow(tmp_path: Path) -> None:
    """It stores them as INT96, which Arrow reads as nanoseconds unless told otherwise."""
    location, last = str(tmp_path), datetime(9999, 12, 31, tzinfo=UTC)
    given = pa.table({"k": [1], "at": pa.array([last], pa.timestamp("us", "UTC"))})
    write_deltalake(location, given)
    (file,) = tmp_path.glob("*.parquet")
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)
    found = rows_with_keys(location, pa.table({"k": [1]}), ["at"])
    assert found is not None
    assert found.to_pylist() == [{"at": last}]

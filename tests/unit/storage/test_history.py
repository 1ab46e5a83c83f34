"""What a range of commits holds, as another writer left it; no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from spark_jobs.storage import commits, log
from spark_jobs.storage.history import (
    Changes,
    changes_between,
    last_alike,
    readable,
    rows_changed,
    rows_of_commit,
)

FED = {"delta.enableChangeDataFeed": "true"}
ROWS = pa.table({"k": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]})
FIELDS = [
    {"name": "k", "type": "integer", "nullable": True, "metadata": {}},
    {"name": "v", "type": "string", "nullable": True, "metadata": {}},
]


@pytest.fixture
def fed(tmp_path: Path) -> str:
    """A table with a change feed; its name is one that a log has to escape."""
    location = str(tmp_path / "a table")
    write_deltalake(location, ROWS, configuration=FED)
    return location


def test_each_commit_is_dated_and_described_by_itself(fed: str) -> None:
    for number in range(1, 3):
        said = CommitProperties(custom_metadata={"userMetadata": json.dumps({"n": number})})
        write_deltalake(fed, ROWS, mode="append", commit_properties=said)
    newest_first = log.commits(fed)
    assert [commits.commit(fed, one) for one in (2, 1, 0)] == newest_first
    assert [one.metadata for one in newest_first] == [{"n": 2}, {"n": 1}, None]
    assert log.committed_at(fed, 0) == newest_first[2].timestamp < newest_first[0].timestamp
    assert commits.commit(fed, 3) is None


def commit(location: str, version: int, *actions: dict[str, Any]) -> None:
    """Write a commit by hand."""
    folder = Path(location) / "_delta_log"
    folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(json.dumps(one) for one in actions)
    (folder / f"{version:020}.json").write_text(lines)


def described(fields: list[dict[str, Any]], **properties: str) -> dict[str, Any]:
    """The action that gives a table its columns."""
    return {
        "metaData": {
            "id": "a",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": {**FED, **properties},
            "createdTime": 0,
        }
    }


def mapped(name: str, column: str, number: int) -> dict[str, Any]:
    """A column that the files keep under another name."""
    kept = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": column}
    return {"name": name, "type": "integer", "nullable": True, "metadata": kept}


PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["columnMapping", "deletionVectors"],
        "writerFeatures": ["columnMapping", "deletionVectors", "changeDataFeed"],
    }
}


def test_changes_of_another_writer_are_fed_and_counted(fed: str) -> None:
    write_deltalake(fed, ROWS.slice(0, 2), mode="append")
    found = changes_between(fed, after=0, upto=1)
    assert found == Changes(rows_changed=True, fed=True, reshaped=False, rows=2)
    DeltaTable(fed).delete("k = 2")
    assert changes_between(fed, after=0, upto=2).fed


def test_a_table_without_a_change_feed_is_not_fed(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), ROWS)
    write_deltalake(str(tmp_path), ROWS, mode="append")
    assert not changes_between(str(tmp_path), after=0, upto=1).fed


def test_a_change_feed_that_was_off_in_between_is_not_fed(fed: str) -> None:
    for value in ("false", "true"):
        DeltaTable(fed).alter.set_table_properties({"delta.enableChangeDataFeed": value})
        write_deltalake(fed, ROWS, mode="append")
    assert not changes_between(fed, after=0, upto=4).fed
    assert not changes_between(fed, after=2, upto=4).fed
    assert changes_between(fed, after=3, upto=4).fed


def test_compaction_and_properties_are_no_change(fed: str) -> None:
    write_deltalake(fed, ROWS, mode="append")
    DeltaTable(fed).optimize.compact()
    DeltaTable(fed).alter.set_table_properties({"delta.appendOnly": "false"})
    found = changes_between(fed, after=1, upto=3)
    assert found == Changes(rows_changed=False, fed=True, reshaped=False, rows=0)
    assert not rows_changed(fed, after=1, upto=3)


def test_the_newest_version_with_the_same_rows_and_columns(fed: str) -> None:
    write_deltalake(fed, ROWS, mode="append")
    DeltaTable(fed).optimize.compact()
    assert last_alike(fed, at=1, upto=2) == 2
    DeltaTable(fed).alter.set_table_properties({"delta.appendOnly": "false"})
    write_deltalake(fed, ROWS, mode="append")
    assert last_alike(fed, at=1, upto=4) == 3
    assert last_alike(fed, at=0, upto=4) == 0
    assert last_alike(fed, at=4, upto=4) == 4
    assert last_alike(fed, at=4, upto=2) == 4, "the table lost versions"
    DeltaTable(fed).alter.add_columns([Field("w", PrimitiveType("string"))])
    write_deltalake(fed, ROWS.append_column("w", ROWS["v"]), mode="append")
    assert last_alike(fed, at=4, upto=6) == 4, "it has another column in between"


@pytest.mark.parametrize("lost", ["first", "last"])
def test_a_missing_commit_means_no_change_feed(fed: str, lost: str) -> None:
    for _ in range(3):
        write_deltalake(fed, ROWS, mode="append")
    DeltaTable(fed).create_checkpoint()
    version = 0 if lost == "first" else 2
    (Path(fed) / "_delta_log" / f"{version:020}.json").unlink()
    found = changes_between(fed, after=0, upto=3)
    assert (found.rows_changed, found.fed) == (True, False)


def test_a_change_whose_files_were_vacuumed_is_no_feed(fed: str) -> None:
    DeltaTable(fed).delete("k = 2")
    write_deltalake(fed, ROWS, mode="append")
    assert changes_between(fed, after=0, upto=2).fed
    table = DeltaTable(fed)
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    now = DeltaTable(fed).version()
    assert not changes_between(fed, after=0, upto=now).fed
    assert changes_between(fed, after=1, upto=now).fed, "rows that were added need no other files"


def test_a_file_of_the_change_feed_that_was_taken_is_no_feed(fed: str) -> None:
    DeltaTable(fed).delete("k = 2")
    for file in (Path(fed) / "_change_data").iterdir():
        file.unlink()
    assert not changes_between(fed, after=0, upto=1).fed


def test_files_whose_names_are_escaped_are_found(tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2], "at": ["a b:c", "é%20"]})
    write_deltalake(str(tmp_path), rows, partition_by=["at"], configuration=FED)
    DeltaTable(str(tmp_path)).delete("k = 1")
    write_deltalake(str(tmp_path), rows, mode="overwrite")
    assert changes_between(str(tmp_path), after=0, upto=2).fed


@pytest.mark.parametrize("value", ["New York", "a/b", "50%", "é", None])
def test_a_version_whose_files_have_escaped_names_is_readable(
    tmp_path: Path, value: str | None
) -> None:
    location = str(tmp_path / "t")
    rows = pa.table({"k": [1], "city": pa.array([value], pa.string())})
    write_deltalake(location, rows, partition_by=["city"])
    assert readable(location, 0)
    [file] = Path(location).glob("city=*/*.parquet")
    file.unlink()
    assert not readable(location, 0)


@pytest.mark.parametrize(
    ("kind", "name", "there"),
    [
        ("u", "ab^-aqEH.-t@S}K{vb[*k^", True),
        ("u", "^-aqEH.-t@S}K{vb[*k^", False),
        ("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", True),
        ("p", "file:/elsewhere/deletion_vector.bin", False),
    ],
)
def test_deletion_vectors_of_the_past_have_to_be_there(
    tmp_path: Path, kind: str, name: str, there: bool
) -> None:
    location = str(tmp_path)
    commit(location, 0, PROTOCOL, described(FIELDS))
    vector = {"storageType": kind, "pathOrInlineDv": name, "sizeInBytes": 1, "cardinality": 1}
    removed = {"path": "one%20file.parquet", "dataChange": True, "deletionVector": vector}
    commit(location, 1, {"remove": removed})
    (tmp_path / "one file.parquet").touch()
    (tmp_path / "ab").mkdir()
    known = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    (tmp_path / known).touch()
    assert changes_between(location, after=0, upto=1).fed is there


def test_files_of_another_table_are_no_feed(tmp_path: Path) -> None:
    location = str(tmp_path)
    commit(location, 0, PROTOCOL, described(FIELDS))
    commit(location, 1, {"remove": {"path": "file:/elsewhere/a.parquet", "dataChange": True}})
    assert not changes_between(location, after=0, upto=1).fed


@pytest.mark.parametrize(
    ("column", "reshaped"),
    [
        (mapped("k", "col-1", 1), False),
        (mapped("k", "col-2", 2), True),
        (mapped("renamed", "col-1", 1), True),
        (mapped("k", "col-1", 1) | {"type": "long"}, True),
        (mapped("k", "col-1", 1) | {"nullable": False}, False),
    ],
    ids=["same", "dropped and added again", "renamed", "widened", "required"],
)
def test_a_column_is_identified_by_its_position_in_the_files(
    tmp_path: Path, column: dict[str, Any], reshaped: bool
) -> None:
    location = str(tmp_path)
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    commit(location, 0, PROTOCOL, described([mapped("k", "col-1", 1)], **mode))
    commit(location, 1, described([column], **mode))
    found = changes_between(location, after=0, upto=1)
    assert (found.rows_changed, found.reshaped) == (reshaped, reshaped)
    assert rows_changed(location, after=0, upto=1) is reshaped


def test_turning_column_mapping_on_changes_no_column(tmp_path: Path) -> None:
    location = str(tmp_path)
    plain = {"name": "k", "type": "integer", "nullable": True, "metadata": {}}
    commit(location, 0, PROTOCOL, described([plain]))
    mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}
    commit(location, 1, described([mapped("k", "k", 1)], **mode))
    assert not changes_between(location, after=0, upto=1).reshaped


def test_a_column_inside_of_a_struct_counts_too(tmp_path: Path) -> None:
    location = str(tmp_path)
    for version, column in enumerate(("col-2", "col-3")):
        inner = {"type": "struct", "fields": [mapped("inner", column, 2 + version)]}
        outer = mapped("outer", "col-1", 1) | {"type": inner}
        mode = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"}
        commit(location, version, PROTOCOL, described([outer], **mode))
    assert changes_between(location, after=0, upto=1).reshaped


def test_a_range_that_is_too_long_is_taken_for_changed(
    fed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.storage.history.MOST_COMMITS", 1)
    for _ in range(2):
        DeltaTable(fed).alter.set_table_properties({"delta.appendOnly": "false"})
    found = changes_between(fed, after=0, upto=2)
    assert (found.rows_changed, found.fed) == (True, False)


@pytest.mark.parametrize("silent", [{1}, {2}, {3}, {1, 2, 3}, {0, 1, 2, 3}])
@pytest.mark.parametrize("limit", [None, 2, 20])
def test_a_commit_that_says_nothing_is_counted(
    fed: str, silent: set[int], limit: int | None
) -> None:
    for number in range(1, 4):
        said = CommitProperties(custom_metadata={"userMetadata": json.dumps({"n": number})})
        write_deltalake(fed, ROWS, mode="append", commit_properties=said)
    for number in silent:
        file = Path(fed) / "_delta_log" / f"{number:020}.json"
        lines = file.read_text().splitlines()
        file.write_text("\n".join(one for one in lines if "commitInfo" not in json.loads(one)))
    found = log.commits(fed, limit=limit)
    assert [one.version for one in found] == [3, 2, 1, 0][:limit]
    for one in found:
        expected = None if one.version in {0, *silent} else {"n": one.version}
        assert one.metadata == expected


def test_counts_of_rows_may_be_null(fed: str) -> None:
    folder = Path(fed) / "_delta_log"
    metrics = {"numTargetRowsInserted": None, "numTargetRowsDeleted": "2"}
    commit(fed, 1, {"commitInfo": {"operationMetrics": metrics}})
    assert rows_of_commit(fed, 1) == 2
    commit(fed, 1, {"commitInfo": {"operationMetrics": None}})
    assert rows_of_commit(fed, 1) == 0
    lines = map(json.loads, (folder / f"{0:020}.json").read_text().splitlines())
    add = next(one["add"] for one in lines if "add" in one)
    for stats in ('{"numRecords": null}', "{}", None):
        commit(fed, 1, {"add": {**add, "stats": stats}})
        assert rows_of_commit(fed, 1) is None
        assert changes_between(fed, after=0, upto=1).rows is None


def test_other_partitions_are_another_shape(fed: str) -> None:
    """Delta reads the removed files with the new partition columns: their values would be NULL."""
    write_deltalake(fed, ROWS, mode="overwrite", schema_mode="overwrite", partition_by=["v"])
    assert DeltaTable(fed).metadata().partition_columns == ["v"]
    assert changes_between(fed, after=0, upto=1).reshaped

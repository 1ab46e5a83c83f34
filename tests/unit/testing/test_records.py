"""Records of a case as bytes: envelopes of changes, JSON, Avro, text, hex."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader

from spark_jobs.definitions.silver_case import RecordFile
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import Location
from spark_jobs.graph.manifest import AvroSchema, Column, SourceEntry
from spark_jobs.testing.errors import CaseRecordError
from spark_jobs.testing.records import Sent, sent, words

CLOCK = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACE = Location("tests/cases/silver/t.yml", 7)
SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "id", "type": "string"},
        {
            "name": "amount",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
            ],
        },
    ],
}
COLUMNS = (Column(name="id", type="bigint"), Column(name="name", type="string"))


def source(format_: SourceFormat) -> SourceEntry:
    return SourceEntry(
        name="t",
        format=format_,
        topic="t",
        columns=COLUMNS,
        keys=("id",) if format_ is SourceFormat.DEBEZIUM else (),
        schemas=(
            AvroSchema(prefix="0000000007", text=json.dumps({**SCHEMA, "fields": []})),
            AvroSchema(prefix="0000000008", text=json.dumps(SCHEMA)),
        ),
        file="sources/t.yml",
    )


def made(format_: SourceFormat = SourceFormat.DEBEZIUM, **fields: Any) -> Sent:
    record = RecordFile.model_validate(fields)
    return sent(record, source(format_), position=4, clock=CLOCK, location=PLACE)


def test_a_change_is_an_envelope_under_its_key() -> None:
    found = made(op="u", before={"id": 1}, after={"id": 1, "name": "Zoë"}, commit=3)
    assert (found.key, found.position) == (b'{"id": 1}', 4)
    assert json.loads(found.value or b"") == {
        "op": "u",
        "before": {"id": 1},
        "after": {"id": 1, "name": "Zoë"},
        "source": {"lsn": 4, "sequence": '["3", "4"]', "ts_us": 1772366400000000},
        "transaction": None,
    }


def test_a_change_has_its_own_position_and_time() -> None:
    at = datetime(2026, 3, 1, 12, 0, 1)  # noqa: DTZ001 - as YAML reads it
    found = made(op="d", before={"id": 1}, position=2, at=at)
    told = json.loads(found.value or b"")
    assert told["source"] == {"lsn": 2, "sequence": '["1", "2"]', "ts_us": 1772366401000000}
    assert (told["after"], found.position) == (None, 2)


@pytest.mark.parametrize(("op", "commit"), [("c", "3"), ("r", None)])
def test_only_a_row_of_a_snapshot_has_no_commit_before_it(op: str, commit: str | None) -> None:
    told = json.loads(made(op=op, after={"id": 1}).value or b"")
    assert json.loads(told["source"]["sequence"]) == [commit, "4"]


def test_an_image_has_all_declared_columns() -> None:
    told = json.loads(made(op="c", after={"id": 1, "more": 2}).value or b"")
    assert told["after"] == {"id": 1, "name": None, "more": 2}


def test_a_truncation_has_no_key_and_a_change_may_have_another() -> None:
    assert made(op="t").key is None
    assert made(op="u", after={"name": "a"}, key={"id": 1}).key == b'{"id": 1}'
    assert made(op="u", after={"id": 1}, key=None).key is None


@pytest.mark.parametrize("format_", [SourceFormat.JSON, SourceFormat.DEBEZIUM])
def test_a_value_is_sent_as_it_is(format_: SourceFormat) -> None:
    times = {
        "at": datetime(2026, 3, 1, 8, 0, 0, 500000),  # noqa: DTZ001 - as YAML reads it
        "day": date(2026, 3, 1),
    }
    expected = b'{"at": "2026-03-01T08:00:00.500000Z", "day": "2026-03-01"}'
    assert made(format_, value=times) == Sent(None, expected)
    assert made(format_, value='{"id": ').value == b'{"id": '
    assert made(format_, value="").value == b""
    assert made(format_, value=None, key="k") == Sent(b"k", None)
    assert made(format_, hex="1f 8b").value == b"\x1f\x8b"


def test_an_avro_record_has_the_last_schema() -> None:
    value = made(SourceFormat.AVRO, value={"id": "a", "amount": "10.50"}).value or b""
    assert value[:5].hex() == "0000000008"
    read = schemaless_reader(io.BytesIO(value[5:]), parse_schema(SCHEMA), None)
    assert read == {"id": "a", "amount": Decimal("10.50")}


@pytest.mark.parametrize(
    ("format_", "fields", "problem"),
    [
        ("debezium", {}, "neither op, value nor hex"),
        ("debezium", {"op": "t", "value": None}, "op and value"),
        ("debezium", {"value": {}, "after": {"id": 1}, "at": CLOCK}, "after, at without op"),
        ("debezium", {"op": "u", "before": {"id": 1}}, "no 'after'"),
        ("debezium", {"op": "d", "after": {"id": 1}}, "no 'before'"),
        ("debezium", {"op": "c", "before": {"id": 1}, "after": {"id": 1}}, "never has 'before'"),
        ("debezium", {"op": "t", "after": {"id": 1}}, "never has 'after'"),
        ("debezium", {"op": "u", "after": {"name": "a"}}, "key column 'id'"),
        ("debezium", {"op": "u", "after": {"id": 1}, "key": 7}, "its key 7"),
        ("json", {"op": "u", "after": {"id": 1}}, "has the format json"),
        ("json", {"value": [1]}, "its value [1]"),
        ("json", {"hex": "1"}, "its hex"),
        ("avro", {"value": {"amount": 1}}, "last schema"),
        ("avro", {"value": {"id": "a", "amount": "x"}}, "last schema"),
    ],
)
def test_a_record_that_has_no_bytes_is_refused(
    format_: str, fields: dict[str, Any], problem: str
) -> None:
    with pytest.raises(CaseRecordError) as caught:
        made(SourceFormat(format_), **fields)
    assert problem in caught.value.primary
    assert caught.value.location == PLACE
    assert caught.value.hint


def test_records_are_told_apart() -> None:
    change = RecordFile.model_validate({"op": "u", "after": {"id": 1}})
    assert words(change, made(op="u", after={"id": 1})) == 'u {"id": 1} at 4'
    other = RecordFile.model_validate({"value": None})
    assert words(other, Sent(None, None)) == "NULL"
    assert words(other, Sent(None, b"\xff\n")) == r"\xff\n"
    assert len(words(other, Sent(None, b"x" * 99))) == 40

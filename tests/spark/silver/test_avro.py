"""Events in Avro: decoded by the schema that each names, or quarantined with a reason."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from fastavro import parse_schema, schemaless_writer
from pyspark.sql import SparkSession

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.compile import compile_project
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.silver.parse.typed import typed_records
from tests.spark.silver.world import bronze

AT = datetime(2024, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": ["null", "string"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {
        "name": "amount",
        "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
    },
    {"name": "score", "type": "double"},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["CARD", "CASH"]}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "photo", "type": "bytes"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "limits", "type": {"type": "map", "values": "long"}},
]
NEWER = {"type": "record", "name": "Payment", "fields": FIELDS}
OLDER = {"type": "record", "name": "Payment", "fields": [*reversed(FIELDS[:3])]}
PAYMENT = {
    "id": "a",
    "at": AT,
    "amount": Decimal("123456789012345678.90"),
    "score": math.inf,
    "kind": "CASH",
    "day": date(2024, 2, 29),
    "photo": b"\x00\xff",
    "tags": ["x", "\u202e\U0001f600"],
    "limits": {"EUR": 5},
}
COLUMNS = {
    "id": "STRING",
    "at": "TIMESTAMP",
    "amount": "DECIMAL(20,2)",
    "score": "DOUBLE",
    "kind": "STRING",
    "day": "DATE",
    "photo": "BINARY",
    "tags": "ARRAY<STRING>",
    "limits": "MAP<STRING,BIGINT>",
}
FRAME = {number: bytes([0]) + number.to_bytes(4, "big") for number in (1, 2, 3)}


def source(project: Path) -> SourceEntry:
    """A source whose registry calls the older schema 1 and the newer 2."""
    declared = {
        "format": str(SourceFormat.AVRO),
        "topic": "payments",
        "event_id": "id",
        "schemas": {"1": "older.avsc", "2": "newer.avsc"},
        "columns": COLUMNS,
    }
    (project / "sources").mkdir()
    (project / "sources/payments.yml").write_text(json.dumps(declared))
    (project / "older.avsc").write_text(json.dumps(OLDER))
    (project / "newer.avsc").write_text(json.dumps(NEWER))
    return compile_project(project).sources["payments"]


def encoded(schema: dict[str, Any], **fields: Any) -> bytes:
    body = io.BytesIO()
    schemaless_writer(body, parse_schema(schema, _write_hint=False), PAYMENT | fields)
    return body.getvalue()


def varint(number: int) -> bytes:
    """A long as Avro writes it."""
    number <<= 1
    found = b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def typed(spark: SparkSession, source: SourceEntry, values: list[bytes]) -> list[dict[str, Any]]:
    records = bronze(spark, [(None, value) for value in values])
    rows = typed_records(records, source, max_bytes=1000).orderBy("__offset").collect()
    return [row.asDict(recursive=True) for row in rows]


def test_each_record_is_read_by_the_schema_that_it_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    values = [FRAME[2] + encoded(NEWER), FRAME[1] + encoded(OLDER, id="b")]
    newer, older = typed(spark, source(tmp_path), values)
    assert newer["__problem"] is older["__problem"] is None
    at = newer.pop("at").astimezone(UTC)
    assert {name: newer[name] for name in COLUMNS if name != "at"} | {"at": at} == PAYMENT
    assert (older["id"], older["amount"], older["score"]) == ("b", PAYMENT["amount"], None)
    assert older["at"].astimezone(UTC) == AT


def test_unreadable_records_have_a_reason(spark: SparkSession, tmp_path: Path) -> None:
    whole = encoded(NEWER)
    present = varint(1)
    cases = {
        b"": ("EMPTY_VALUE", None),
        FRAME[2] + b"x" * 1000: ("OVERSIZED", "1005 bytes"),
        FRAME[3] + whole: ("UNKNOWN_SCHEMA", (FRAME[3] + whole)[:10].hex().upper()),
        b'{"id": "a"}': ("UNKNOWN_SCHEMA", b'{"id": "a"'.hex().upper()),
        b"\x00": ("UNKNOWN_SCHEMA", "00"),
        FRAME[2]: ("MALFORMED_AVRO", None),
        FRAME[2] + whole[:-3]: ("MALFORMED_AVRO", None),
        # Lengths that nothing follows: of 2 GiB, beyond any memory, and below zero.
        FRAME[2] + present + varint(2**31 - 9) + b"a": ("MALFORMED_AVRO", None),
        FRAME[2] + present + varint(2**50) + b"a": ("MALFORMED_AVRO", None),
        FRAME[2] + present + b"\x01": ("MALFORMED_AVRO", None),
        FRAME[2] + encoded(NEWER, id=None): ("MISSING_REQUIRED", "id"),
        FRAME[2] + encoded(NEWER, at=datetime(2200, 1, 1, tzinfo=UTC)): None,
    }
    rows = typed(spark, source(tmp_path), list(cases))
    found = [row["__problem"] and tuple(row["__problem"].values()) for row in rows]
    assert found == list(cases.values())

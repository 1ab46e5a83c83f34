"""Records that are shown while another process takes them out of quarantine."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.silver.check import quarantine
from spark_jobs.silver.check.quarantine import rejected_records

AT = datetime(2026, 1, 2, tzinfo=UTC)
MOMENTS = ("timestamp", "arrived_at", "quarantined_at")


def test_a_record_that_leaves_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = str(tmp_path / "orders")
    rows = [
        {
            **dict.fromkeys(MOMENTS, AT),
            "key": b"k",
            "value": b"{}",
            "headers": None,
            "topic": "t",
            "partition": 0,
            "offset": offset,
            "reason": "TYPE_MISMATCH",
            "detail": "amount",
            "attempts": 1,
        }
        for offset in (7, 8)
    ]
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.Table.from_pylist(rows)
    at = table.schema.get_field_index("headers")
    table = table.set_column(at, "headers", pa.nulls(2, headers))
    write_deltalake(location, table)
    read, calls = quarantine.read_columns, []

    def reprocessed_meanwhile(*args: Any, **named: Any) -> pa.Table:
        if calls:
            DeltaTable(location).delete('"offset" = 8')
        calls.append(args)
        return read(*args, **named)

    monkeypatch.setattr(quarantine, "read_columns", reprocessed_meanwhile)
    assert [one.offset for one in rejected_records(location, limit=5)] == [7]

"""How large a batch is that has not ended, read off checkpoints as Spark writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.serving.report.batches_in_work import BatchInWork, batch_in_work

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def plan(checkpoint: Path, number: int, offsets: dict[str, Any]) -> None:
    file = checkpoint / "offsets" / str(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    said = json.dumps({"batchTimestampMs": int(AT.timestamp() * 1000)})
    file.write_text(f"v1\n{said}\n{json.dumps(offsets)}")


def end(checkpoint: Path, number: int) -> None:
    file = checkpoint / "commits" / str(number)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("v1\n{}")


def test_a_batch_of_a_topic_counts_the_offsets_since_the_one_before(tmp_path: Path) -> None:
    place = str(tmp_path)
    assert batch_in_work(place) is None
    plan(tmp_path, 0, {"t": {"0": 500, "1": 20}})
    assert batch_in_work(place) == BatchInWork(0, 520, AT)
    end(tmp_path, 0)
    assert batch_in_work(place) is None
    plan(tmp_path, 1, {"t": {"0": 507, "1": 20, "2": 3}})
    assert batch_in_work(place) == BatchInWork(1, 10, AT)


def test_a_first_batch_of_a_table_counts_the_rows_of_its_version(tmp_path: Path) -> None:
    checkpoint, bronze = tmp_path / "checkpoint", str(tmp_path / "bronze")
    for rows in (3, 4, 5):
        write_deltalake(bronze, pa.table({"a": list(range(rows))}), mode="append")
    plan(checkpoint, 0, {"reservoirVersion": 1, "index": 0})
    assert batch_in_work(str(checkpoint), bronze=bronze) == BatchInWork(0, 7, AT)
    # Right after the newest version, as Delta says that all of it was read.
    plan(checkpoint, 0, {"reservoirVersion": 3, "index": -100})
    assert batch_in_work(str(checkpoint), bronze=bronze) == BatchInWork(0, 12, AT)
    end(checkpoint, 0)
    plan(checkpoint, 1, {"reservoirVersion": 4, "index": -100})
    assert batch_in_work(str(checkpoint), bronze=bronze) == BatchInWork(1, None, AT)
    plan(tmp_path / "other", 0, {"reservoirVersion": 0, "index": 0})
    missing = batch_in_work(str(tmp_path / "other"), bronze=str(tmp_path / "none"))
    assert missing == BatchInWork(0, None, AT)


@pytest.mark.parametrize("text", ["", "v1", "v1\n{", "v1\n{}\n{", "v1\n[]\n{}", "v9\n{}\n{}"])
def test_a_damaged_checkpoint_hides_nothing_else(tmp_path: Path, text: str) -> None:
    """After a power loss, for instance: somebody looks at the status because of it."""
    plan(tmp_path, 0, {})
    (tmp_path / "offsets" / "0").write_text(text)
    assert batch_in_work(str(tmp_path)) is None

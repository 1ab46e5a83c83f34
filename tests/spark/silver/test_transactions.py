"""Whether bronze has every change of a transaction, whatever was sent twice."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_jobs.silver.check.transactions import IncompleteTransaction, incomplete_transactions
from tests.spark.silver.world import NOW, Record, bronze

SINCE = round(NOW.timestamp() * 1000)


def change(number: int, place: int, *, wrapped: bool = False) -> Record:
    """A change of a transaction; each change has another position in its id."""
    told = {"id": f"{number}:{number * 100 + place}", "total_order": place}
    value = {"op": "c", "after": {"order_id": place}, "transaction": told}
    return None, json.dumps({"schema": {}, "payload": value} if wrapped else value).encode()


def early(changes: dict[str, int]) -> dict[str, Any]:
    """Transactions of which Kafka knew before it had the first record of bronze."""
    return {"told_at": dict.fromkeys(changes, SINCE - 1), "since": SINCE}


def test_changes_missing_in_bronze_are_found_by_transaction(spark: SparkSession) -> None:
    records: list[Record] = [
        (None, b'{"op": "r", "after": {"order_id": 1}, "transaction": null}'),
        *(change(571, place) for place in (1, 2, 4)),
        change(572, 1, wrapped=True),
        # Sent again after a restart: it is one change all the same.
        change(573, 1),
        change(573, 1),
        (b"key", None),
        (None, b"no json"),
    ]
    frame = bronze(spark, records).withColumn("arrival_date", sf.to_date("arrived_at"))
    changes = {"571": 3, "572": 1, "573": 2, "574": 1}
    found = incomplete_transactions(frame, changes, **early(changes))
    assert found == [IncompleteTransaction("573", 2, 1), IncompleteTransaction("574", 1, 0)]
    assert str(found[0]) == "573 (1 of 2)"
    assert incomplete_transactions(frame, {}, **early({})) == []


def row(number: int, snapshot: str) -> Record:
    """A row of a snapshot that a transaction has read."""
    source = {"txId": number, "snapshot": snapshot}
    return None, json.dumps({"op": "r", "after": {"order_id": 1}, "source": source}).encode()


def test_rows_of_a_later_snapshot_stand_for_changes_that_never_come(spark: SparkSession) -> None:
    """A connector whose worker was killed between two snapshots; see the module's docstring."""
    records: list[Record] = [
        row(560, "first"),
        row(560, "last"),
        change(571, 1),
        row(580, "first_in_data_collection"),
        row(580, "true"),
        row(580, "last_in_data_collection"),
        # It was cut off, and an incremental one has no one moment: neither counts.
        row(590, "first"),
        row(590, "true"),
        row(591, "incremental"),
    ]
    # Records were sent a second apart.
    sent = sf.timestamp_millis(sf.lit(SINCE) + sf.col("offset") * 1000)
    frame = bronze(spark, records).withColumns(
        {"arrival_date": sf.to_date("arrived_at"), "timestamp": sent}
    )
    changes = {"559": 1, "571": 2, "572": 1, "574": 1, "585": 1}
    facts = early(changes)
    # It was open when the snapshot began, which has not seen it.
    facts["told_at"]["574"] = SINCE + 3500
    found = incomplete_transactions(frame, changes, **facts)
    assert [(one.number, one.in_snapshot) for one in found] == [
        ("559", True),
        ("571", True),
        ("572", True),
        ("574", False),
        ("585", False),
    ]

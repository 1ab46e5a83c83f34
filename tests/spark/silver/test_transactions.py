"""Whether bronze has every change of a transaction, whatever was sent twice."""

from __future__ import annotations

import json

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
    found = incomplete_transactions(frame, changes, since=SINCE)
    assert found == [IncompleteTransaction("573", 2, 1), IncompleteTransaction("574", 1, 0)]
    assert str(found[0]) == "573 (1 of 2)"
    assert incomplete_transactions(frame, {}, since=SINCE) == []

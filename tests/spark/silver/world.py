"""Small declarations and bronze records for the silver tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import ApplyMode, Column, SilverEntry, SourceEntry
from spark_jobs.graph.scd2 import HISTORY_COLUMNS
from spark_jobs.sections import Engine, StreamSettings
from spark_jobs.silver.apply.batch import BatchApplier
from spark_jobs.silver.store.tables import SilverTables
from spark_jobs.state.batches import SilverBatch
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.policy import batch_limit

BRONZE = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string, "
    "partition int, offset bigint, timestamp timestamp, arrived_at timestamp"
)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
Record = tuple[bytes | None, bytes | None]


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=kind) for name, kind in types.items())


EVENTS = SourceEntry(
    name="clicks",
    format=SourceFormat.JSON,
    topic="clicks",
    event_id="event_id",
    file="sources/clicks.yml",
    columns=columns(event_id="string", user_id="bigint", amount="decimal(12,2)", at="timestamp"),
)
CLICKS = SilverEntry(
    name="clicks",
    source="clicks",
    sql="",
    projection="SELECT event_id, user_id, amount, at FROM source AS source WHERE user_id >= 0 "
    "OR user_id IS NULL",
    columns=EVENTS.columns,
    apply=ApplyMode.APPEND,
    event_id="event_id",
    file="sql/silver/clicks.sql",
    fingerprint="1",
)
CHANGES = SourceEntry(
    name="orders",
    format=SourceFormat.DEBEZIUM,
    topic="shop.public.orders",
    keys=("order_id",),
    file="sources/orders.yml",
    columns=columns(order_id="bigint", status="string", amount="decimal(12,2)"),
)
ORDERS = SilverEntry(
    name="orders",
    source="orders",
    sql="",
    projection="SELECT o.order_id, o.status, o.amount * 2 AS twice FROM source AS o "
    "WHERE o.status <> 'hidden'",
    columns=columns(order_id="bigint", status="string", twice="decimal(13,2)"),
    keys=("order_id",),
    apply=ApplyMode.UPSERT,
    apply_as_deletes="__op = 'd'",
    file="sql/silver/orders.sql",
    fingerprint="1",
)

# The same orders as the rows that each held for a while; nothing is computed from a large value.
HISTORY = ORDERS.model_copy(
    update={
        "apply": ApplyMode.HISTORY,
        "projection": "SELECT o.order_id, o.status, o.amount FROM source AS o",
        "columns": (*CHANGES.columns, *HISTORY_COLUMNS),
    }
)


def bronze(
    spark: SparkSession, records: Sequence[Record], *, first: int = 0, topic: str = "t"
) -> DataFrame:
    """Records as a bronze table holds them, in one partition from an offset on."""
    rows = [
        (key, value, [], topic, 0, first + place, NOW, NOW)
        for place, (key, value) in enumerate(records)
    ]
    return spark.createDataFrame(rows, BRONZE)


def event(**fields: Any) -> Record:
    return None, json.dumps(fields).encode()


def change(
    operation: str,
    key: int,
    position: int,
    *,
    commit: int | None = None,
    status: str = "placed",
    amount: str = "1.50",
    at: float | None = None,
    first: bool = False,
) -> Record:
    """A Debezium change of an order; a snapshot's row has no commit.

    Args:
        operation: c, u, r, d or t.
        key: the order.
        position: its place in the log, and the second of its commit.
        commit: the end of the transaction before; just before the change if not given.
        status: of the order.
        amount: of the order.
        at: the second of its commit, where it is not the position.
        first: whether no transaction came before it since the snapshot.
    """
    if commit is None and operation != "r" and not first:
        commit = position - 1
    image = {"order_id": key, "status": status, "amount": amount}
    sequence = json.dumps([None if commit is None else str(commit), str(position)])
    value = {
        "op": operation,
        "before": {"order_id": key} if operation == "d" else None,
        "after": None if operation == "d" else image,
        "source": {
            "lsn": position,
            "sequence": sequence,
            "ts_us": round((position if at is None else at) * 1_000_000),
        },
        "transaction": None,
    }
    if operation == "t":
        return None, json.dumps({**value, "after": None}).encode()
    return json.dumps({"order_id": key}).encode(), json.dumps(value).encode()


def applier(
    lake: Lake,
    source: SourceEntry,
    entry: SilverEntry,
    *,
    record: list[SilverBatch] | None = None,
    epoch: int = 1,
    engine: Engine = Engine.AUTO,
) -> BatchApplier:
    batches: list[SilverBatch] = [] if record is None else record
    return BatchApplier(
        source=source,
        entry=entry,
        tables=SilverTables.of(lake, entry),
        epoch=epoch,
        # With the usual limit, the steps that give a table its types apply its batches too.
        max_bytes=StreamSettings().max_record_bytes,
        record=batches.append,
        clock=lambda: NOW,
        few=batch_limit(engine),
    )


def counts(batch: SilverBatch | None) -> dict[str, int]:
    """The counts that are not zero."""
    assert batch is not None
    names: Iterable[str] = ("applied", "superseded", "quarantined", "duplicate", "ignored")
    found = {name: getattr(batch, name) for name in names if getattr(batch, name)}
    assert sum(found.values()) == batch.records
    return found

"""Debezium's topic of transactions, in both forms and with repeated records."""

from __future__ import annotations

import json
from typing import Any

from spark_jobs.bronze.transactions import ended_transactions, transaction_topic


def told(status: str, number: int, at: int, **counts: int) -> dict[str, Any]:
    tables = [
        {"data_collection": f"public.{name}", "event_count": count}
        for name, count in counts.items()
    ]
    ends = {"event_count": sum(counts.values()), "data_collections": tables}
    nothing = {"event_count": None, "data_collections": None}
    more = ends if status == "END" else nothing
    return {"status": status, "id": f"{number}:{at * 7}", "ts_ms": at, **more}


def test_ended_transactions_are_counted_by_table() -> None:
    records = [
        told("BEGIN", 571, 40),
        told("END", 571, 50, orders=2, users=1),
        {"schema": {"type": "struct"}, "payload": told("END", 572, 60, orders=3)},
        # After a restart the connector may tell it again, from the middle on.
        told("END", 571, 55, orders=1),
        told("BEGIN", 573, 70),
    ]
    sent = [(json.dumps(one).encode(), number) for number, one in enumerate(records)]
    found = ended_transactions([*sent, (None, 9)])
    assert found.changes == {"public.orders": {"571": 2, "572": 3}, "public.users": {"571": 1}}
    assert found.told_at == {"571": 1, "572": 2}
    assert found.since == 40
    assert ended_transactions([]).changes == {}


def test_a_topic_that_is_named_otherwise() -> None:
    assert transaction_topic("orders", "public.orders") is None

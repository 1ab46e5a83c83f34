"""Reads Debezium's transaction topic: how many changes each transaction made to each table.

Kafka keeps that topic as long as any other. It is read from Kafka each time: it is evidence about
other topics, not data.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from spark_jobs.bronze.errors import TopicMissingError
from spark_jobs.bronze.reconcile import consumed
from spark_jobs.bronze.topics import Topics
from spark_jobs.names import TRANSACTION_SUFFIX


@dataclass
class EndedTransactions:
    """The finished transactions in a topic.

    Attributes:
        changes: number of changes by table and by transaction id.
        told_at: by transaction id, when Kafka was first told of its end.
        since: time of the first of them; None if there are none.

    Times are in milliseconds since 1970.
    """

    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    told_at: dict[str, int] = field(default_factory=dict)
    since: int | None = None


def transaction_topic(topic: str, table: str) -> str | None:
    """The transaction topic for a table's topic; None if its name has another form.

    >>> transaction_topic("shop.public.orders", "public.orders")
    'shop.transaction'
    """
    prefix = topic.removesuffix(f".{table}")
    return None if prefix == topic else prefix + TRANSACTION_SUFFIX


def read_transactions(topics: Topics, topic: str) -> EndedTransactions:
    """The finished transactions in a topic; empty if it does not exist.

    Raises:
        KafkaUnreachableError: no broker answers.
    """
    try:
        facts = topics.facts(topic)
    except TopicMissingError:
        return EndedTransactions()
    records = consumed(topics.access, facts)
    return ended_transactions((message.value(), message.timestamp()[1]) for message in records)


def ended_transactions(records: Iterable[tuple[bytes | None, int]]) -> EndedTransactions:
    """The finished transactions in such records; repeated records do not matter.

    Args:
        records: value of each, and Kafka's timestamp in milliseconds since 1970.
    """
    found = EndedTransactions()
    for record, sent in _parsed(records):
        at = record.get("ts_ms")
        if isinstance(at, int):
            found.since = at if found.since is None else min(found.since, at)
        if record.get("status") != "END":
            continue
        number = transaction_number(str(record["id"]))
        found.told_at[number] = min(sent, found.told_at.get(number, sent))
        for one in record.get("data_collections") or ():
            counts = found.changes.setdefault(one["data_collection"], {})
            counts[number] = max(counts.get(number, 0), one["event_count"])
    return found


def transaction_number(transaction: str) -> str:
    """The database's transaction id, without the position that the connector appends.

    >>> transaction_number("571:53195829")
    '571'
    """
    return transaction.partition(":")[0]


def _parsed(records: Iterable[tuple[bytes | None, int]]) -> Iterator[tuple[dict[str, Any], int]]:
    for value, sent in records:
        if value is not None:
            record = json.loads(value)
            yield record.get("payload") or record, sent

"""What Debezium tells of a database's transactions: how many changes each made to each table.

The connector writes it to a topic of its own, which Kafka keeps as long as it keeps any topic.
That topic is read where it lies, each time: it is evidence about the other topics, and no data.
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
    """The transactions whose end a topic tells.

    Attributes:
        changes: of each table, how many changes each transaction made; the ids are the database's.
        since: when the first of them began or ended, in milliseconds since 1970; None for none.
    """

    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    since: int | None = None


def transaction_topic(topic: str, table: str) -> str | None:
    """The topic of transactions beside that of a table; None where its name does not tell.

    >>> transaction_topic("shop.public.orders", "public.orders")
    'shop.transaction'
    """
    prefix = topic.removesuffix(f".{table}")
    return None if prefix == topic else prefix + TRANSACTION_SUFFIX


def read_transactions(topics: Topics, topic: str) -> EndedTransactions:
    """The transactions that a topic tells; none where there is no such topic.

    Raises:
        KafkaUnreachableError: no broker answers.
    """
    try:
        facts = topics.facts(topic)
    except TopicMissingError:
        return EndedTransactions()
    return ended_transactions(message.value() for message in consumed(topics.access, facts))


def ended_transactions(values: Iterable[bytes | None]) -> EndedTransactions:
    """The transactions that records of such a topic tell; what is sent again says the same."""
    found = EndedTransactions()
    for record in _records(values):
        at = record.get("ts_ms")
        if isinstance(at, int):
            found.since = at if found.since is None else min(found.since, at)
        if record.get("status") != "END":
            continue
        number = transaction_number(str(record["id"]))
        for one in record.get("data_collections") or ():
            counts = found.changes.setdefault(one["data_collection"], {})
            counts[number] = max(counts.get(number, 0), one["event_count"])
    return found


def transaction_number(transaction: str) -> str:
    """The database's number of a transaction; the connector adds a position, which differs.

    >>> transaction_number("571:53195829")
    '571'
    """
    return transaction.partition(":")[0]


def _records(values: Iterable[bytes | None]) -> Iterator[dict[str, Any]]:
    for value in values:
        if value is not None:
            record = json.loads(value)
            yield record.get("payload") or record

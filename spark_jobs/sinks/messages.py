"""The records of a sink's topic, and the rows that they add up to. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spark_jobs.definitions.vocabulary import KafkaFormat
from spark_jobs.names import TableName
from spark_jobs.sinks.changes import Change


@dataclass(frozen=True)
class Message:
    r"""A record: key and value as text; a value of None is a tombstone.

    >>> Message.decoded(b"\xff", None).encoded()
    (b'\xff', None)
    """

    key: str
    value: str | None

    @classmethod
    def decoded(cls, key: bytes | None, value: bytes | None) -> Message:
        """A record of anybody: bytes that are not UTF-8 become surrogates."""
        text = None if value is None else value.decode(errors="surrogateescape")
        return cls((key or b"").decode(errors="surrogateescape"), text)

    def encoded(self) -> tuple[bytes, bytes | None]:
        """Key and value as in Kafka; the inverse of ``decoded``."""
        value = None if self.value is None else self.value.encode(errors="surrogateescape")
        return self.key.encode(errors="surrogateescape"), value


def messages(
    change: Change, form: KafkaFormat, *, table: TableName, version: int, at_ms: int
) -> Iterator[Message]:
    """The records of a change, in order.

    Args:
        change: change of one key.
        form: format of the topic.
        table: the row's table.
        version: version of the table that is delivered.
        at_ms: current time in milliseconds since 1970.
    """
    key, before, after = change.key, change.before, change.after
    match form:
        case KafkaFormat.UPSERT:
            yield Message(key, after)
        case KafkaFormat.CHANGELOG:
            gone, come = ("-D", "+I") if before is None or after is None else ("-U", "+U")
            if before is not None:
                yield Message(key, f'{{"op":"{gone}","data":{before}}}')
            if after is not None:
                yield Message(key, f'{{"op":"{come}","data":{after}}}')
        case KafkaFormat.DEBEZIUM:
            op = "c" if before is None else "d" if after is None else "u"
            source = json.dumps(
                {
                    "connector": "tidemark",
                    "schema": table.layer.value,
                    "table": table.name,
                    "version": version,
                },
                separators=(",", ":"),
            )
            yield Message(
                key,
                f'{{"before":{before or "null"},"after":{after or "null"},"source":{source},'
                f'"op":"{op}","ts_ms":{at_ms}}}',
            )
            if after is None:
                # Lets compaction remove the key.
                yield Message(key, None)


def fold(records: Iterable[Message], form: KafkaFormat) -> dict[str, str]:
    """The rows by key after all records of a topic, both as text.

    Args:
        records: in the topic's order.
        form: the format of the values.
    """
    rows: dict[str, str] = {}
    for record in records:
        row = _after(record.value, form)
        if row is None:
            rows.pop(record.key, None)
        else:
            rows[record.key] = row
    return rows


def _after(value: str | None, form: KafkaFormat) -> str | None:
    """The row of a key after a record; "null" for a foreign record."""
    if value is None or form is KafkaFormat.UPSERT:
        return value
    try:
        told = json.loads(value)
        if form is KafkaFormat.DEBEZIUM:
            row = told["after"]
        else:
            row = told["data"] if told["op"].startswith("+") else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return "null"
    return None if row is None else json.dumps(row, ensure_ascii=False, separators=(",", ":"))

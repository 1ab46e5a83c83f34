"""The operations of a load: transactions on the shop's database and records for Kafka topics.

They are plain values, so a plan can be compared, counted and tested without services.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Row = Mapping[str, object]


class ChangeKind(StrEnum):
    """What happens to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class Trait(StrEnum):
    """A special property of a record; a record has at most one."""

    FRESH = "fresh"
    DUPLICATE = "duplicate"
    LATE = "late"
    OUT_OF_ORDER = "out_of_order"
    NULL_KEY = "null_key"
    MALFORMED = "malformed"


class Malformation(StrEnum):
    """The ways in which a record can be malformed."""

    TRUNCATED_JSON = "truncated_json"
    EMPTY_VALUE = "empty_value"
    WRONG_TYPE = "wrong_type"
    ARRAY = "array"
    INVALID_UTF8 = "invalid_utf8"
    MISSING_ID = "missing_id"
    MISSING_FIELD = "missing_field"
    TOMBSTONE = "tombstone"
    OVERSIZED = "oversized"


@dataclass(frozen=True)
class Change:
    """One change of one row: ``key`` finds it, ``values`` are the columns that are set."""

    kind: ChangeKind
    table: str
    key: Row
    values: Row


class Ending(StrEnum):
    """How a transaction ends."""

    COMMIT = "commit"
    ROLLBACK = "rollback"


@dataclass(frozen=True)
class Transaction:
    """Changes of one database transaction."""

    changes: tuple[Change, ...]
    ending: Ending = Ending.COMMIT

    @property
    def weight(self) -> int:
        """The number of operations that it counts as."""
        return len(self.changes)


@dataclass(frozen=True)
class Record:
    """One Kafka record; ``malformation`` is set where the trait is MALFORMED."""

    topic: str
    key: bytes | None
    value: bytes | None
    trait: Trait
    malformation: Malformation | None = None

    @property
    def weight(self) -> int:
        """The number of operations that it counts as."""
        return 1


@dataclass(frozen=True)
class Operation:
    """An operation at ``at`` seconds after the start."""

    at: float
    action: Transaction | Record


def insert(table: str, key: Row, values: Row) -> Change:
    """A new row."""
    return Change(ChangeKind.INSERT, table, key, values)


def update(table: str, key: Row, values: Row) -> Change:
    """New values in an existing row."""
    return Change(ChangeKind.UPDATE, table, key, values)


def delete(table: str, key: Row) -> Change:
    """A deleted row."""
    return Change(ChangeKind.DELETE, table, key, {})

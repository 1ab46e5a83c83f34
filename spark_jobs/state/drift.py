"""Schema drift: the first arrival of each declared column, and all differences.

A difference between the declaration and the records is one row, with the first record that shows
it. It stays until a person accepts it; whether it still exists depends on the declaration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, delete, select, update

from spark_jobs.state.tables import SCHEMA_DRIFT, SOURCE_COLUMNS
from spark_jobs.state.types import utc_now
from spark_jobs.state.upsert import insert_or_keep, insert_or_replace


class DriftKind(StrEnum):
    """How records differ from the declaration."""

    # An undeclared field.
    UNKNOWN = "unknown"
    # A column that used to arrive: it was dropped or renamed.
    VANISHED = "vanished"
    # A column that has never arrived.
    MISSING = "missing"
    # A column whose values changed their kind, or are not of the declared type.
    RETYPED = "retyped"
    # A value that the column's declaration does not list.
    VALUE = "value"


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A difference, and the first record that shows it.

    Attributes:
        detail: the value or its kind, as in the record; "" if there is none.
        declared: the column's declared type at that time; "" if undeclared.
        sequence: the record's position in the order of commits; "" for an event.
        seen_at: when it was recorded.
        accepted_by: the person who accepted it; None: nobody.
    """

    source: str
    kind: DriftKind
    column: str
    detail: str = ""
    declared: str = ""
    topic: str
    partition: int
    offset: int
    sequence: str = ""
    seen_at: datetime = field(default_factory=utc_now)
    accepted_by: str | None = None
    accepted_at: datetime | None = None
    reason: str | None = None

    @property
    def identity(self) -> tuple[str, str, str]:
        """Identifies a difference within a source, whatever record showed it first."""
        return self.kind.value, self.column, self.detail if self.kind is DriftKind.VALUE else ""

    @property
    def position(self) -> str:
        """The first record, as topic, partition and offset."""
        return f"{self.topic}, partition {self.partition}, offset {self.offset}"

    def as_dict(self) -> dict[str, Any]:
        """The attributes by name."""
        return asdict(self)


def drift_words(drift: Drift) -> str:
    """The difference in a few words.

    >>> place = {"topic": "t", "partition": 0, "offset": 5}
    >>> drift_words(Drift(source="s", kind=DriftKind.VANISHED, column="email", **place))
    'column "email" arrives no longer'
    """
    match drift.kind:
        case DriftKind.UNKNOWN:
            return f'field "{drift.column}" ({drift.detail}) is not declared'
        case DriftKind.VANISHED:
            return f'column "{drift.column}" arrives no longer'
        case DriftKind.MISSING:
            return f'column "{drift.column}" has not arrived yet'
        case DriftKind.RETYPED:
            return f'column "{drift.column}" ({drift.declared}) has other values: {drift.detail}'
        case DriftKind.VALUE:
            return f'column "{drift.column}" has the value "{drift.detail}", which is not listed'


@dataclass(frozen=True)
class Arrival:
    """A declared column that arrives, since when, and with which kind of value."""

    source: str
    column: str
    kind: str
    sequence: str


def record_arrivals(connection: Connection, arrivals: Iterable[Arrival]) -> None:
    """Record since when columns arrive; they are no longer missing."""
    for one in arrivals:
        insert_or_replace(connection, SOURCE_COLUMNS, asdict(one))
        columns = SCHEMA_DRIFT.c
        ours = (columns.source == one.source) & (columns.column == one.column)
        missing = columns.kind == DriftKind.MISSING.value
        connection.execute(delete(SCHEMA_DRIFT).where(ours & missing))


def arrivals(connection: Connection, source: str) -> list[Arrival]:
    """All columns of a source that have arrived."""
    query = select(SOURCE_COLUMNS).where(SOURCE_COLUMNS.c.source == source)
    return [Arrival(**row) for row in connection.execute(query).mappings()]


def record_drifts(connection: Connection, drifts: Iterable[Drift]) -> None:
    """Record differences; existing ones keep their first position and acceptance."""
    for one in drifts:
        row = {**asdict(one), "kind": one.kind.value, "told": one.identity[2]}
        insert_or_keep(connection, SCHEMA_DRIFT, row)


def drifts(connection: Connection, source: str | None = None) -> list[Drift]:
    """The differences of a source, or of all, by source and column."""
    columns = SCHEMA_DRIFT.c
    query = select(SCHEMA_DRIFT).order_by(
        columns.source, columns.column, columns.kind, columns.told
    )
    if source is not None:
        query = query.where(columns.source == source)
    found = []
    for row in connection.execute(query).mappings():
        values = {name: value for name, value in row.items() if name != "told"}
        found.append(Drift(**{**values, "kind": DriftKind(row["kind"])}))
    return found


def accept_drifts(
    connection: Connection, source: str, *, columns: Iterable[str], by: str, reason: str
) -> int:
    """Accept the open differences of some columns; returns their number."""
    known = SCHEMA_DRIFT.c
    ours = (known.source == source) & known.column.in_(list(columns))
    done = connection.execute(
        update(SCHEMA_DRIFT)
        .where(ours & known.accepted_by.is_(None))
        .values(accepted_by=by, accepted_at=utc_now(), reason=reason)
    )
    return done.rowcount

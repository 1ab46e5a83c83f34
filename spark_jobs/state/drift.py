"""What sources were seen to send: each declared column's first arrival, and each difference.

A difference between a declaration and what arrives is one row, with the first record that shows
it. It stays until somebody accepts it; whether it still stands is for the declaration to say.
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
    """How what arrives differs from what is declared."""

    # A field that no column declares.
    UNKNOWN = "unknown"
    # A column that arrived, and then no longer does: dropped, or renamed.
    VANISHED = "vanished"
    # A column that has not arrived yet.
    MISSING = "missing"
    # A column whose values are of another kind than before, or not of the declared type.
    RETYPED = "retyped"
    # A value beside those that the column lists.
    VALUE = "value"


@dataclass(frozen=True, kw_only=True)
class Drift:
    """A difference, and the first record that shows it.

    Attributes:
        detail: the value or its kind, as the record has it; "" where there is none.
        declared: the column's type when it was seen; "" where it had none.
        sequence: the record's place in the order of commits; "" for an event.
        seen_at: when it was recorded.
        accepted_by: who said that it is as it should be; None: nobody yet.
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
        """Told apart within a source; a place in the source differs with who read it first."""
        return self.kind.value, self.column, self.detail if self.kind is DriftKind.VALUE else ""

    @property
    def position(self) -> str:
        """The first record, as topic, partition and offset."""
        return f"{self.topic}, partition {self.partition}, offset {self.offset}"

    def as_dict(self) -> dict[str, Any]:
        """The form for programs."""
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
    """A declared column that arrives, since when, and as which kind of value."""

    source: str
    column: str
    kind: str
    sequence: str


def record_arrivals(connection: Connection, arrivals: Iterable[Arrival]) -> None:
    """Note since when columns arrive, and that they are missing no longer."""
    for one in arrivals:
        insert_or_replace(connection, SOURCE_COLUMNS, asdict(one))
        columns = SCHEMA_DRIFT.c
        ours = (columns.source == one.source) & (columns.column == one.column)
        missing = columns.kind == DriftKind.MISSING.value
        connection.execute(delete(SCHEMA_DRIFT).where(ours & missing))


def arrivals(connection: Connection, source: str) -> list[Arrival]:
    """Every column of a source that has arrived."""
    query = select(SOURCE_COLUMNS).where(SOURCE_COLUMNS.c.source == source)
    return [Arrival(**row) for row in connection.execute(query).mappings()]


def record_drifts(connection: Connection, drifts: Iterable[Drift]) -> None:
    """Record differences; one that is there keeps its first position and its acceptance."""
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
    """Accept the open differences of some columns; returns how many."""
    known = SCHEMA_DRIFT.c
    ours = (known.source == source) & known.column.in_(list(columns))
    done = connection.execute(
        update(SCHEMA_DRIFT)
        .where(ours & known.accepted_by.is_(None))
        .values(accepted_by=by, accepted_at=utc_now(), reason=reason)
    )
    return done.rowcount

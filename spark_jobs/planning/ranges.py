"""Time ranges of rows to recompute, and their pieces; in UTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from spark_jobs.graph.manifest import Column, GoldEntry, MaintenanceStrategy

DAY = timedelta(days=1)
# Types of time columns.
DATE = "date"
TIME_TYPES = frozenset({DATE, "timestamp", "timestamp_ntz"})
# Each piece takes a query, a commit, and a line in Airflow's log.
MOST_PIECES = 1000


@dataclass(frozen=True)
class TimeRange:
    """The half-open range [start, end), with time zones.

    >>> str(TimeRange(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 6, tzinfo=UTC)))
    '2026-01-01 to 2026-01-02 06:00'
    """

    start: datetime
    end: datetime

    def __str__(self) -> str:
        return f"{_words(self.start)} to {_words(self.end)}"

    def whole_days(self) -> TimeRange:
        """The days that the range overlaps, for a DATE column."""
        start = _midnight(self.start)
        end = _midnight(self.end)
        return TimeRange(start, end if end == self.end and end > start else end + DAY)


@dataclass(frozen=True, kw_only=True)
class RowRange:
    """The rows of a view whose time column is in a range.

    Attributes:
        column: the time column.
        type: its type, one of ``TIME_TYPES``.
        piece: length of a piece that is computed at once; None: the whole range.
    """

    column: str
    type: str
    time: TimeRange
    piece: timedelta | None = None

    def __str__(self) -> str:
        return f"rows with {self.column} from {self.time}"

    def pieces(self) -> tuple[TimeRange, ...]:
        """The range split into pieces, oldest first."""
        if self.piece is None:
            return (self.time,)
        step = max(self.piece, DAY) if self.type == DATE else self.piece
        found, start = [], self.time.start
        while start < self.time.end:
            end = self.time.end
            # Compared as lengths: no instant comes after the year 9999.
            if step < end - start:
                end = _midnight(start + step) if self.type == DATE else start + step
            found.append(TimeRange(start, end))
            start = end
        return tuple(found)

    def as_dict(self) -> dict[str, Any]:
        """As stored in the ledger: ``column``, ``type``, ``from``, ``to``, ``piece_seconds``."""
        return {
            "column": self.column,
            "type": self.type,
            "from": self.time.start.isoformat(),
            "to": self.time.end.isoformat(),
            "piece_seconds": None if self.piece is None else self.piece.total_seconds(),
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        """Decode the result of ``as_dict``.

        Raises:
            KeyError: a key is missing.
        """
        seconds = value["piece_seconds"]
        return cls(
            column=value["column"],
            type=value["type"],
            time=TimeRange(
                datetime.fromisoformat(value["from"]), datetime.fromisoformat(value["to"])
            ),
            piece=None if seconds is None else timedelta(seconds=seconds),
        )


def time_column(entry: GoldEntry) -> Column | None:
    """The time column of a view; None if it has none.

    That is a column of the declared grain; else the only time column of the derived key; else, if
    rows are not groups, the only time column at all. Other columns, such as the time of the latest
    order, are attributes: a row would move between ranges when they change.
    """
    times = [one for one in entry.columns if one.type in TIME_TYPES]
    declared = [one for one in times if one.name in entry.grain]
    if declared:
        return declared[0]
    maintenance = entry.maintenance
    if maintenance is None:
        return None
    if keyed := [one for one in times if one.name in maintenance.key]:
        return keyed[0] if len(keyed) == 1 else None
    by_row = maintenance.rule is MaintenanceStrategy.ROW_DELTAS
    return times[0] if by_row and len(times) == 1 else None


def row_range(column: Column, time: TimeRange, *, piece: timedelta | None = None) -> RowRange:
    """The rows of a range of a time column; whole days for a DATE."""
    time = time.whole_days() if column.type == DATE else time
    return RowRange(column=column.name, type=column.type, time=time, piece=piece)


def _midnight(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _words(at: datetime) -> str:
    at = at.astimezone(UTC)
    return f"{at.date()}" if at == _midnight(at) else f"{at.date()} {at:%H:%M}"

"""The changes that make a sink equal to its table: one change per key. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spark_jobs.sinks.errors import SinkKeysNotUniqueError


@dataclass(frozen=True)
class Change:
    """A key's row before and after, as text; None for no row."""

    key: str
    before: str | None
    after: str | None


def net(sink: str, moves: Iterable[tuple[str, str, bool]]) -> list[Change]:
    """The net change of inserted and deleted rows in any order.

    Args:
        sink: the sink's name, for messages.
        moves: key, row, and whether the row was inserted.

    Raises:
        SinkKeysNotUniqueError: two rows remain with the same key.
    """
    sums: dict[str, dict[str, int]] = {}
    for key, row, came in moves:
        rows = sums.setdefault(key, {})
        rows[row] = rows.get(row, 0) + (1 if came else -1)
    found = []
    for key, rows in sums.items():
        enter = [row for row, count in rows.items() if count > 0]
        leave = [row for row, count in rows.items() if count < 0]
        if len(enter) > 1 or len(leave) > 1 or any(abs(count) > 1 for count in rows.values()):
            raise SinkKeysNotUniqueError(sink, key)
        if enter or leave:
            before, after = leave[0] if leave else None, enter[0] if enter else None
            found.append(Change(key, before, after))
    return found


def difference(
    sink: str, rows: Iterable[tuple[str, str]], held: Mapping[str, str]
) -> Iterator[Change]:
    """The changes that make a sink's content equal to a table.

    Args:
        sink: the sink's name, for messages.
        rows: key and row of all rows of the table.
        held: the sink's rows by key.

    Raises:
        SinkKeysNotUniqueError: two rows of the table have the same key.
    """
    left = dict(held)
    seen: set[str] = set()
    for key, row in rows:
        if key in seen:
            raise SinkKeysNotUniqueError(sink, key)
        seen.add(key)
        before = left.pop(key, None)
        if before != row:
            yield Change(key, before, row)
    for key, before in left.items():
        yield Change(key, before, None)

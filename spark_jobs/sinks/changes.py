"""What a sink has to do so that it holds what its table holds: one change for each key. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from spark_jobs.sinks.errors import SinkKeysNotUniqueError


@dataclass(frozen=True)
class Change:
    """A key's row before and after, as text; None where there is none."""

    key: str
    before: str | None
    after: str | None


def net(sink: str, moves: Iterable[tuple[str, str, bool]]) -> list[Change]:
    """The net of rows that came and went in any order: a row that only moved is no change.

    Args:
        sink: its name, for messages.
        moves: key and row, and whether the row came.

    Raises:
        SinkKeysNotUniqueError: two rows of one key are left.
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
    """What makes a sink that holds some rows equal to a table.

    Args:
        sink: its name, for messages.
        rows: key and row of every row of the table.
        held: the sink's rows by key.

    Raises:
        SinkKeysNotUniqueError: two rows of the table have one key.
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

"""A model of silver tables from a database's history, and a generator of histories.

A history is a list of changes in commit order. The model processes it once, without batches,
offsets or sequences.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass

KEPT = "__debezium_unavailable_value"
# The SELECT filters rows with this status.
HIDDEN = "hidden"
# The transaction that may be open while snapshots are taken after those before it.
OPEN = 3
Values = tuple[str, str | None]


@dataclass(frozen=True)
class Change:
    """A change as in Debezium's records.

    Attributes:
        key: None for a truncation.
        transaction: its number, in commit order.
        number: the change's position in its transaction.
        at: commit time in seconds; clocks can step back.
        body: a large value; KEPT if the update did not change it.
        open_since: the first snapshot during which its transaction was open.
    """

    key: int | None
    operation: str
    transaction: int
    number: int
    at: int
    status: str = ""
    body: str | None = None
    open_since: int | None = None

    @property
    def place(self) -> tuple[int, int]:
        # A snapshot sees what was committed before, so it comes after its transaction's changes.
        return self.transaction, self.number

    def record(self) -> tuple[bytes | None, bytes]:
        """The record's key and value."""
        end = self.transaction * 1000
        position = end if self.operation == "r" else end - 500 + self.number
        before = None if self.operation == "r" else str(end - 1000)
        if self.open_since is not None:
            before, position = None, self.open_since * 1000 - 500 + self.number
        image = {"id": self.key, "status": self.status, "body": self.body}
        value = {
            "op": self.operation,
            "before": {"id": self.key} if self.operation == "d" else None,
            "after": None if self.operation in "dt" else image,
            "source": {
                "lsn": position,
                "sequence": json.dumps([before, str(position)]),
                "ts_us": self.at * 1_000_000,
            },
        }
        key = None if self.key is None else json.dumps({"id": self.key}).encode()
        return key, json.dumps(value).encode()


@dataclass(frozen=True)
class Database:
    """The clock and the truncations, which all histories of a table share."""

    times: tuple[int, ...]
    truncations: tuple[Change, ...]

    @classmethod
    def of(cls, rng: random.Random, *, transactions: int) -> Database:
        now, times = 1_700_000_000, []
        for _ in range(transactions):
            now += rng.choice((1, 1, 5, 60, 0, -7))
            times.append(now)
        cuts = rng.sample(range(OPEN + 1, transactions), 2)
        gone = tuple(Change(None, "t", cut, 9, times[cut - 1]) for cut in sorted(cuts))
        return cls(tuple(times), gone)

    def history(
        self, rng: random.Random, key: int, *, large: bool, opened: bool = False
    ) -> list[Change]:
        """What happens to one key.

        Args:
            rng: draws it.
            key: the key.
            large: whether updates may leave the large value alone.
            opened: whether it begins with a transaction that was open during a snapshot, or during
                two: the connector was killed in the first.
        """
        cuts = {cut.transaction for cut in self.truncations}
        chosen = set(rng.sample(range(1, len(self.times) + 1), rng.randint(2, 8)))
        found: list[Change] = []
        current: Values | None = None
        since = rng.choice((OPEN - 2, OPEN - 1)) if opened else None
        if since is not None:
            # Often nothing comes after it.
            later = sorted(one for one in chosen if one > OPEN)
            chosen = {OPEN, *later[: rng.choice((0, 0, 1, 9))]}
            current = (rng.choice(("a", HIDDEN)), "x")
            found += [
                Change(key, "r", one, 8, self.times[one - 1], *current)
                for one in range(since, OPEN)
            ]
        for transaction in sorted(chosen | cuts):
            at, drawn = self.times[transaction - 1], rng.choice((1, 1, 1, 2, 3))
            for number in range(drawn if transaction in chosen else 0):
                operation, values, told = _step(rng, current, large=large)
                began = since if transaction == OPEN else None
                found.append(Change(key, operation, transaction, number, at, *told, began))
                current = values
            if transaction in cuts:
                current = None
            elif current and rng.random() < 0.2:
                # A snapshot reads the current row.
                found.append(Change(key, "r", transaction, 8, at, *current))
        return found


def _step(
    rng: random.Random, current: Values | None, *, large: bool
) -> tuple[str, Values | None, tuple[str, str | None]]:
    """An operation, the values after it, and the values in the record."""
    if current and rng.random() < 0.25:
        return "d", None, ("", None)
    status = rng.choice(("a", "b", "c", HIDDEN))
    # Filtered rows are not stored, so no value can be taken from them.
    if current and current[0] != HIDDEN and large and rng.random() < 0.5:
        return "u", (status, current[1]), (status, KEPT)
    body = rng.choice((None, "x", "y"))
    return ("u" if current else "c"), (status, body), (status, body)


def current_rows(history: Iterable[Change]) -> set[tuple[object, ...]]:
    """The rows at the end."""
    rows: dict[int | None, Values] = {}
    for change in sorted(history, key=lambda one: one.place):
        if change.operation == "t":
            rows.clear()
        elif change.operation == "d":
            rows.pop(change.key, None)
        else:
            body = rows[change.key][1] if change.body == KEPT else change.body
            rows[change.key] = (change.status, body)
    return {(key, *values) for key, values in rows.items() if values[0] != HIDDEN}


def history_rows(history: Iterable[Change]) -> set[tuple[object, ...]]:
    """The rows of one key with their validity in seconds.

    Each change replaces the history from its own time on.
    """
    spans: list[tuple[int, Values | None]] = []
    values: Values | None = None
    key = None
    for change in sorted(history, key=lambda one: one.place):
        key = key if change.key is None else change.key
        if change.operation in "dt":
            values = None
        else:
            body = values[1] if change.body == KEPT and values else change.body
            values = (change.status, body)
        spans = [span for span in spans if span[0] < change.at]
        spans.append((change.at, values if values and values[0] != HIDDEN else None))
    rows: set[tuple[object, ...]] = set()
    for at, (begin, held) in enumerate(spans):
        if held is None or (at and spans[at - 1][1] == held):
            continue
        end = next((time for time, other in spans[at:] if other != held), None)
        rows.add((key, *held, begin, end))
    return rows

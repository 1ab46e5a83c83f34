"""Tables of the random tests: without keys, of every type, with few distinct values."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from spark_jobs.graph.duck.kinds import kind_of

Row = tuple[object, ...]
Multiset = Counter[Row]
Types = Mapping[str, str]
Tables = Mapping[str, Types]

INT, TEXT, DATE, MOMENT = "int", "string", "date", "timestamp"
DECIMAL, DOUBLE, FLAG, LIST = "decimal(8,2)", "double", "boolean", "array<int>"
TYPES: dict[str, dict[str, str]] = {
    "silver.a": {"k": INT, "x": INT, "y": INT, "t": TEXT, "d": DATE, "o": FLAG},
    "silver.b": {"k": INT, "x": INT, "z": INT, "t": TEXT, "m": DECIMAL, "s": MOMENT},
    "silver.c": {"j": INT, "y": INT, "z": INT, "d": DATE, "f": DOUBLE, "xs": LIST},
}
# The same without types for which DuckDB is rarely used.
EXACT_TYPES = {
    table: {name: kind for name, kind in types.items() if kind not in {DOUBLE, LIST}}
    for table, types in TYPES.items()
}
# Doubles are sums of powers of two, so that sums do not depend on the order. A query's constants
# are among these values, so that its conditions are true for some rows.
VALUES: dict[str, tuple[object, ...]] = {
    INT: (0, 1, 2, 3),
    TEXT: ("a", "b", "B", "ab", ""),
    DATE: tuple(date(2026, 1, day) for day in (1, 2, 3, 5)),
    MOMENT: (
        datetime(2026, 1, 1, tzinfo=UTC),
        datetime(2026, 1, 1, 10, 30, tzinfo=UTC),
        datetime(2026, 1, 3, 12, tzinfo=UTC),
        datetime(2026, 1, 3, 23, 59, 59, 500_000, tzinfo=UTC),
    ),
    DECIMAL: tuple(map(Decimal, ("0.00", "1.50", "-1.50", "2.25", "10.00"))),
    DOUBLE: (0.0, 0.25, 1.5, -2.5),
    FLAG: (True, False),
    LIST: ((), (1,), (1, 2, 2), (None, 3)),
}


def literal(value: object) -> str:  # noqa: PLR0911 - one case for each type
    """A literal for both engines; lists are in DuckDB's syntax."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case str():
            return f"'{value}'"
        case datetime():
            return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S.%f}+00:00'"
        case date():
            return f"DATE '{value}'"
        case Decimal():
            return f"CAST('{value}' AS DECIMAL(8, 2))"
        case float():
            return f"CAST({value} AS DOUBLE)"
        case tuple():
            return f"[{', '.join(map(literal, value))}]"
        case _:
            return str(value)


def in_duckdb(kind: str) -> str:
    """A type in DuckDB's syntax."""
    if kind.startswith("array<"):
        return f"{in_duckdb(kind[6:-1])}[]"
    found = kind_of(kind)
    assert found is not None, kind
    return found.in_duckdb


def values_query(types: Types, rows: Sequence[Row]) -> str:
    """Rows as a query for DuckDB, each column in its type."""
    typed = ", ".join(
        f"CAST({name} AS {in_duckdb(kind)}) AS {name}" for name, kind in types.items()
    )
    some = rows or [(None,) * len(types)]
    tuples = ", ".join(f"({', '.join(map(_in_duckdb, row))})" for row in some)
    text = f"SELECT {typed} FROM (VALUES {tuples}) AS v({', '.join(types)})"
    return text if rows else f"{text} WHERE FALSE"


def _in_duckdb(value: object) -> str:
    text = literal(value)
    return text.replace("TIMESTAMP '", "TIMESTAMPTZ '") if isinstance(value, datetime) else text


def plain(value: object) -> object:
    """A comparable value: engines return lists, or times in other zones."""
    if isinstance(value, list | tuple):
        return tuple(map(plain, value))
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC)
    return value


class Rows:
    """Generates rows of one table: skewed, with a column that is mostly NULL, and duplicates."""

    def __init__(self, rng: random.Random, types: Types) -> None:
        self.rng, self.types = rng, types
        names = list(types)
        self.empty = rng.choice(names) if rng.random() < 0.3 else ""
        self.skewed = rng.choice(names[:2]) if rng.random() < 0.4 else ""

    def row(self) -> Row:
        """A row."""
        return tuple(self.value(name) for name in self.types)

    def value(self, name: str) -> object:
        """A value of a column."""
        values = VALUES[self.types[name]]
        draw = self.rng.random()
        if draw < (0.8 if name == self.empty else 0.1):
            return None
        if name == self.skewed and draw < 0.8:
            return values[1]
        return self.rng.choice(values)

    def multiset(self, most: int) -> Multiset:
        """Rows, some of them twice or three times."""
        found: Multiset = Counter()
        for _ in range(self.rng.randint(1, most)):
            found[self.row()] += self.rng.choice((1, 1, 1, 1, 2, 3))
        return found

    def change(self, before: Multiset) -> Multiset:
        """A weighted change that deletes no more rows than exist."""
        kinds = ("all", "few", "few", "new", "update", "update", "both", "both")
        match self.rng.choice(kinds) if before else "new":
            case "all":
                return Counter({row: -count for row, count in before.items()})
            case "few":
                return self._fewer(before, 0.3)
            case "new":
                return self._more(before)
            case "update":
                return self._updated(before)
            case _:
                change = self._fewer(before, 0.2)
                for more in (self._more(before), self._updated(before)):
                    change.update(more)
                return Counter({row: max(n, -before[row]) for row, n in change.items()})

    def _fewer(self, before: Multiset, share: float) -> Multiset:
        taken = {r: -self.rng.randint(1, n) for r, n in before.items() if self.rng.random() < share}
        return Counter(taken)

    def _more(self, before: Multiset) -> Multiset:
        """New rows, and copies of existing ones."""
        new = self.multiset(4)
        for row in before:
            if self.rng.random() < 0.15:
                new[row] += 1
        return new

    def _updated(self, before: Multiset) -> Multiset:
        """Updates of one or two values; keys mostly stay."""
        change: Multiset = Counter()
        names = list(self.types)
        for row in before:
            if self.rng.random() < 0.4:
                other = list(row)
                for _ in range(self.rng.randint(1, 2)):
                    at = self.rng.randrange(len(names))
                    other[at] = self.value(names[at])
                change[row] -= 1
                change[tuple(other)] += 1
        return change

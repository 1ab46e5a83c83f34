"""The transactions of a run on a bank's database, generated from a seed, without side effects.

They include every kind of change: several changes of one key in a transaction, keys that change and
are reused, large values that an update does not send, truncations, and rollbacks.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

TABLES = {
    "accounts": ("id", "owner", "balance", "note"),
    "entries": ("id", "account", "amount"),
}
SCHEMA = (
    "CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner TEXT, balance NUMERIC(14, 2), note TEXT)",
    # Stored out of line (TOAST), so that an update that does not change it does not send it.
    "ALTER TABLE accounts ALTER COLUMN note SET STORAGE EXTERNAL",
    "CREATE TABLE entries (id BIGINT PRIMARY KEY, account BIGINT NOT NULL, amount NUMERIC(14, 2))",
)
_LARGE = 3_000
_FEWEST = 20


@dataclass(frozen=True)
class Statement:
    """One statement and its values."""

    text: str
    values: tuple[object, ...] = ()


@dataclass(frozen=True)
class Transaction:
    """Statements of one transaction."""

    statements: Sequence[Statement]
    rolled_back: bool = False


@dataclass
class Bank:
    """The state of the database that the next transaction depends on.

    Attributes:
        accounts: keys in use.
        closed: keys that were in use before.
        last: the last number of an account or an entry.
    """

    rng: random.Random
    accounts: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    last: int = 0

    def next(self) -> Transaction:
        """The next transaction; a rolled back one does not change the state."""
        draw = self.rng.random()
        if len(self.accounts) < _FEWEST or draw < 0.2:
            return Transaction(self._open())
        if draw < 0.65:
            return Transaction(self._transfer())
        if draw < 0.75:
            return Transaction(self._rename())
        if draw < 0.83:
            return Transaction(self._close())
        if draw < 0.90:
            return Transaction(self._move())
        if draw < 0.95:
            return Transaction(self._close_and_open_again())
        if draw < 0.9995:
            return Transaction(self._transfer(), rolled_back=True)
        return Transaction([Statement("TRUNCATE entries")])

    def _number(self) -> int:
        self.last += 1
        return self.last

    def _insert(self, key: int) -> Statement:
        note = None
        if self.rng.random() < 0.2:
            note = "".join(self.rng.choices(string.ascii_letters, k=_LARGE))
        values = (key, f"owner {self.rng.randrange(1000)}", self.rng.randrange(10**6) / 100, note)
        return Statement("INSERT INTO accounts VALUES (%s, %s, %s, %s)", values)

    def _open(self) -> list[Statement]:
        # Sometimes a key that was in use before.
        again = self.closed and self.rng.random() < 0.3
        key = self.closed.pop() if again else self._number()
        self.accounts.append(key)
        return [self._insert(key)]

    def _transfer(self) -> list[Statement]:
        found = []
        for _ in range(self.rng.randint(1, 3)):
            amount = self.rng.randrange(1, 10_000) / 100
            for account, sign in zip(self.rng.sample(self.accounts, 2), (-1, 1), strict=True):
                moved = (sign * amount, account)
                found += [
                    Statement("UPDATE accounts SET balance = balance + %s WHERE id = %s", moved),
                    Statement(
                        "INSERT INTO entries VALUES (%s, %s, %s)",
                        (self._number(), account, sign * amount),
                    ),
                ]
        return found

    def _rename(self) -> list[Statement]:
        note = None if self.rng.random() < 0.5 else f"note {self.rng.random()}"
        values = (f"owner {self.rng.randrange(1000)}", note, self.rng.choice(self.accounts))
        return [Statement("UPDATE accounts SET owner = %s, note = %s WHERE id = %s", values)]

    def _taken(self) -> int:
        return self.accounts.pop(self.rng.randrange(len(self.accounts)))

    def _close(self) -> list[Statement]:
        key = self._taken()
        self.closed.append(key)
        return [
            Statement("DELETE FROM entries WHERE account = %s", (key,)),
            Statement("DELETE FROM accounts WHERE id = %s", (key,)),
        ]

    def _move(self) -> list[Statement]:
        old, new = self._taken(), self._number()
        self.accounts.append(new)
        self.closed.append(old)
        # If a large value is not sent, the new key has no earlier row to take it from.
        text = "UPDATE accounts SET id = %s, note = %s WHERE id = %s"
        return [Statement(text, (new, f"was {old}", old))]

    def _close_and_open_again(self) -> list[Statement]:
        key = self.rng.choice(self.accounts)
        return [Statement("DELETE FROM accounts WHERE id = %s", (key,)), self._insert(key)]


def transactions(seed: int) -> Iterator[Transaction]:
    """An endless sequence of transactions.

    >>> first = transactions(1)
    >>> [one.text[:11] for one in next(first).statements]
    ['INSERT INTO']
    """
    bank = Bank(random.Random(seed))  # noqa: S311
    while True:
        yield bank.next()

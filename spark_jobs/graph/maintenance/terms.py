"""What aggregate state stores of an aggregate's argument."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp


class Stored(StrEnum):
    """What is stored of an argument's values, besides the number of those that are not NULL."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


STORED: Mapping[type[exp.Expr], Stored] = {
    exp.Sum: Stored.SUM,
    exp.Avg: Stored.SUM,
    exp.Min: Stored.MIN,
    exp.Max: Stored.MAX,
}


@dataclass(frozen=True)
class Term:
    """The stored columns of one argument: the number of non-NULL values, and what is read of them.

    Attributes:
        argument: an expression over a row.
        index: makes the names of its columns unique.
        stored: what else is stored.
    """

    argument: exp.Expr
    index: int
    stored: frozenset[Stored] = frozenset()

    @property
    def present(self) -> str:
        return f"nn{self.index}"

    def column(self, stored: Stored) -> str:
        """The name of the column of a sum or an extreme."""
        return f"{stored}{self.index}"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.present, *(self.column(one) for one in Stored if one in self.stored))

    @property
    def extremes(self) -> tuple[Stored, ...]:
        """The stored extremes."""
        return tuple(one for one in (Stored.MIN, Stored.MAX) if one in self.stored)


def extremes_of(term: Term, value: exp.Expr | None = None, suffix: str = "") -> list[exp.Expr]:
    """The stored extremes of the argument, or of another value."""
    calls = {Stored.MIN: exp.Min, Stored.MAX: exp.Max}
    return [
        exp.alias_(calls[one](this=(value or term.argument).copy()), term.column(one) + suffix)
        for one in term.extremes
    ]

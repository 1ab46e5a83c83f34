"""The last step of a refresh: how the computed rows get into the published table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class MergeByKey:
    """Delete rows by their key and insert rows: no row that stays has the key of a deleted one.

    Attributes:
        key: columns of the key; NULL equals NULL.
    """

    key: tuple[str, ...]


@dataclass(frozen=True)
class DeleteInsert:
    """Delete every copy of each row whose number of copies changes; insert those that remain.

    Two rows are equal if all their columns are; NULL equals NULL.
    """


@dataclass(frozen=True)
class Overwrite:
    """Replace all rows, columns and partitions."""


RowStep = MergeByKey | DeleteInsert
LastStep = MergeByKey | DeleteInsert | Overwrite


def matched_columns(step: RowStep, columns: Iterable[str]) -> tuple[str, ...]:
    """The columns by which a row to delete is found.

    >>> matched_columns(MergeByKey(("id",)), ["id", "amount"])
    ('id',)
    >>> matched_columns(DeleteInsert(), ["id", "amount"])
    ('id', 'amount')

    Args:
        step: the last step.
        columns: all columns of the table.
    """
    match step:
        case MergeByKey(key=key):
            return key
        case DeleteInsert():
            return tuple(columns)

"""Masks personal data in rows that a command shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spark_jobs.graph.manifest import Column
from spark_jobs.graph.sql import MASK


def masked(row: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, Any]:
    """A row with values of personal columns masked; NULL stays NULL.

    >>> columns = (Column(name="id", type="int"), Column(name="mail", type="string", pii=True))
    >>> masked({"id": 7, "mail": "ann@example.org"}, columns)
    {'id': 7, 'mail': '***'}
    """
    personal = {column.name for column in columns if column.pii}
    return {
        name: MASK if name in personal and value is not None else value
        for name, value in row.items()
    }

"""Rows as multisets: equal rows count, and their order does not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


def difference(expected: pa.Table, actual: pa.Table) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The rows that only ``expected`` has, and those that only ``actual`` has, by column.

    >>> one, two = pa.table({"a": [1, 1, 2]}), pa.table({"a": [1, 2, 3]})
    >>> difference(one, two)
    (({'a': 1},), ({'a': 3},))
    """
    left, right = expected.to_pylist(), actual.to_pylist()
    return _minus(left, right), _minus(right, left)


def _minus(rows: list[Row], others: list[Row]) -> tuple[Row, ...]:
    # By their text, because lists and structs have no hash; both sides have the same types.
    spare = Counter(map(repr, others))
    found = []
    for row in rows:
        if spare[repr(row)]:
            spare[repr(row)] -= 1
        else:
            found.append(row)
    return tuple(found)

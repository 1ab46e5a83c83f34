"""Whether two results are equal as multisets, with a tolerance for sums of floats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from math import isclose
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

RELATIVE = 1e-9
Row = tuple[Any, ...]


def delta_rows(location: Path | str) -> tuple[list[str], list[Row]]:
    """The columns and rows of a Delta table, read without Spark."""
    found = DeltaTable(location).to_pyarrow_table()
    return found.column_names, list(zip(*(one.to_pylist() for one in found.columns), strict=True))


def difference(
    wanted: tuple[Sequence[str], Iterable[Row]], got: tuple[Sequence[str], Iterable[Row]]
) -> str | None:
    """The difference between two results, ignoring order; None if they are equal."""
    if list(wanted[0]) != list(got[0]):
        return f"columns {list(got[0])}, not {list(wanted[0])}"
    left, right = sorted(wanted[1], key=_order), sorted(got[1], key=_order)
    if len(left) != len(right):
        return f"{len(right)} rows, not {len(left)}"
    for one, other in zip(left, right, strict=True):
        if not all(map(same, one, other)):
            return f"{other}, not {one}"
    return None


def same(one: Any, other: Any) -> bool:
    """Whether two values agree.

    A float equals a decimal if it only differs by rounding to the decimal's last digit.

    >>> same(0.1234567, Decimal("0.123457")), same(2.5, Decimal("2.51")), same(None, 0)
    (True, False, False)
    """
    if one is None or other is None:
        return one is other
    if isinstance(one, float) or isinstance(other, float):
        return isclose(
            one, other, rel_tol=RELATIVE, abs_tol=max(_half_unit(one), _half_unit(other))
        )
    return bool(one == other)


def _half_unit(value: Any) -> float:
    """Half of the last digit of a decimal, plus a tolerance for the float."""
    if not isinstance(value, Decimal):
        return 0.0
    exponent = value.as_tuple().exponent
    return 0.5000001 * 10.0**exponent if isinstance(exponent, int) else 0.0


def _order(row: Row) -> list[tuple[bool, str, Any]]:
    """A sort key with exact values first, so that the tolerance does not affect the order."""
    exact = [_sortable(value) for value in row if not isinstance(value, float | Decimal)]
    return [*exact, *(_sortable(value) for value in row if isinstance(value, float | Decimal))]


def _sortable(value: Any) -> tuple[bool, str, Any]:
    if value is None:
        return (False, "", 0)
    number = isinstance(value, int | float | Decimal)
    return (True, "number" if number else type(value).__name__, float(value) if number else value)
